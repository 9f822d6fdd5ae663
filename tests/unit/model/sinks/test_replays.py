"""How far dead letters have been replayed: each once, whatever reasons are asked for and in which order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.letter_headers import Cause, split_headers
from seamline.model.protocol.sinks.replays import Replayed

CAUSE = Cause("shop", "rejected", "rule r", "why", "sales", "t", 3, 17, 1_357_002_000_123, 5, "abc")
REASONS = ("x", "y", "z")


@pytest.mark.parametrize("seed", range(30))
def test_each_letter_is_replayed_once_in_any_order_of_requests(seed: int) -> None:
    """A replay of one reason, of several, and of all; letters come meanwhile, and any of them may be cut short."""
    dice, done = random.Random(seed), Replayed()
    letters: list[tuple[int, str]] = []
    replayed: list[int] = []
    for step in range(9):
        letters += [(len(letters) + at, dice.choice(REASONS)) for at in range(dice.randrange(6))]
        asked = () if step == 8 else tuple(dice.sample(REASONS, dice.randrange(3)))
        end = len(letters) if step == 8 else dice.randrange(len(letters) + 1)
        for offset, reason in letters[done.find_start(asked, 0) : end]:
            if done.is_due(asked, reason, 0, offset):
                replayed.append(offset)
            done = done.pass_by(asked, 0, offset)
        done = Replayed.from_json(done.to_json())
    assert sorted(replayed) == [offset for offset, _ in letters]


@given(
    headers=st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=4),
    late=st.booleans(),
)
def test_headers_are_parted_as_they_were(headers: list[tuple[str, bytes | None]], late: bool) -> None:
    """A record is produced again with the headers that it had, a dead letter of another pipeline's too."""
    cause = Cause(*list(vars(CAUSE).values())[:11], event_time="1" if late else "", unread=late)
    written = [*headers, *cause.to_headers()]
    assert split_headers(written) == (headers, cause)
    assert split_headers([*written, *CAUSE.to_headers()]) == (written, CAUSE)


@pytest.mark.parametrize(
    "headers", [[], [("a", b"b")], CAUSE.to_headers()[:5], [*CAUSE.to_headers()[:8], ("x", b"")]]
)
def test_a_record_of_somebody_else_is_no_dead_letter(headers: list[tuple[str, bytes | None]]) -> None:
    """It would be produced to a topic that nobody has named."""
    with pytest.raises(SetupError, match="no dead letter of ours"):
        split_headers(headers)


@pytest.mark.parametrize("text", ["", "[]", '{"": 1}', '{"": {"a": 1}}'])
def test_a_progress_that_somebody_else_wrote_is_refused(text: str) -> None:
    """Beginning anew would produce each record twice."""
    with pytest.raises(SetupError, match="replayed cannot be read"):
        Replayed.from_json(text)
