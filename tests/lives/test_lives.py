"""Random lives, each from a seed: every answer on the way, and every table another engine reads, is a plain count."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.lives import lives
from tests.lives.definitions import shaped
from tests.lives.lives import Life
from tests.lives.living import live
from tests.lives.switches import ON
from tests.lives.telling import tell

SECONDS = 30.0
SEEDS = range(1, 13)


def test_lives(record_property: Any) -> None:
    """Nobody has thought of all that may happen: chance does. As many as there is time for."""
    tell(record_property, live(SEEDS, seconds=SECONDS))


def test_a_life_is_the_same_each_time_and_whatever_is_switched_on() -> None:
    """Else a seed would tell nothing."""
    one, other = lives.drawn(7, ()), lives.drawn(7, ())
    assert one.steps == other.steps
    assert one.shape.pipeline.definition == other.shape.pipeline.definition
    more = lives.drawn(7, {"power cuts", "foreign add column of control"})
    assert set(one.steps) <= set(more.steps)


@pytest.mark.parametrize("seed", range(len(lives.THEMES)))
def test_seeds_take_turns_in_the_themes_of_their_lives(seed: int) -> None:
    """Two rare operations meet where a life is full of their kind, and a few lives in a row are of all themes."""
    theme = lives.THEMES[seed % len(lives.THEMES)]
    steps = [step for _, step in lives.drawn(seed, ON, length=400).steps]
    assert sum(isinstance(each, theme) for each in steps) > lives.LEAN * len(steps)


def test_a_failure_is_shrunk_to_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of thirty operations tells nobody what is wrong."""

    def lived(life: Life) -> lives.Failure | None:
        kept = {at for at, _ in life.steps}
        return lives.Failure(life.steps[-1][1], AssertionError("wrong")) if {3, 17} <= kept else None

    monkeypatch.setattr(lives, "lived", lived)
    life = Life(1, shaped(lives.Random(1), on=()), tuple((at, lives.End(at)) for at in range(30)))
    fewer, failure = lives.shrunk(
        life, lives.Failure(lives.End(), AssertionError()), until=time.monotonic() + 60
    )
    assert [at for at, _ in fewer.steps] == [3, 17]
    assert "--seed 1 --keep '3,17'" in lives.told(fewer, failure)
