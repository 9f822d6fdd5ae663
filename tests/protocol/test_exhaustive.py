"""Every state that the protocol can reach within some bounds, and no answer in any of them is wrong."""

from __future__ import annotations

import pytest
from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.search import search

QUICK = {
    # Two writers, three starts, three epochs, death at every commit; refused records and upkeep beside them.
    "two writers": (Bounds((0, None, 1), writers=2, tokens=3, upkeeps=1), 40_000),
    # The same without upkeep, and a commit that fails, or lands without an answer: a view may be behind.
    "lost answers": (Bounds((0, 1), writers=2, tokens=3, mishaps=1), 20_000),
    # Two builds, a rollback and deletion of slices, in every order.
    "publishing": (Bounds((0, 0, 1, 0), takes=1, numbers=4, builds=2, floors=1, rollbacks=1), 2_000),
    # A reader between whose pins anything may happen.
    "a reader": (Bounds(numbers=4, upkeeps=1, builds=1, floors=1, reads=1, crashes=False), 15_000),
    "two reads": (
        Bounds((0, 0, 0, 0), takes=1, numbers=4, builds=2, reads=2, crashes=False, forgets=1),
        2_000,
    ),
    # Another version of the view is born, and is flipped to and back.
    "two versions": (Bounds((0, 0), views=2, tokens=2, flips=2, builds=1, stops=True), 15_000),
    "a catch-up": (Bounds((0, 1), tokens=3, numbers=4, mishaps=1, upkeeps=1), 14_000),
    "duplicates and look-ups": (Bounds((0, 0, 0), ids=(7, 7, 1), numbers=4, builds=2, lookups=1), 700),
}
WIDE = {
    "four starts": (Bounds((0, None, 1), writers=2, tokens=4, numbers=4), 90_000),
    "lost answers and upkeep": (
        Bounds((0, None), writers=2, tokens=3, numbers=4, mishaps=1, upkeeps=1),
        110_000,
    ),
    "everything once": (Bounds((0, 1), writers=2, tokens=2, upkeeps=1, builds=1, reads=1), 60_000),
    "two versions": (Bounds((0, 0), views=2, tokens=2, numbers=3, builds=1, flips=2, mishaps=1), 50_000),
}


@pytest.mark.parametrize("name", QUICK)
def test_no_reachable_state_is_wrong(name: str) -> None:
    """If this fails, the trace is the shortest way to a wrong number."""
    bounds, least = QUICK[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    # A search that a change has emptied proves nothing.
    assert found.states >= least, str(found)


@pytest.mark.faults
@pytest.mark.parametrize("name", WIDE)
def test_no_reachable_state_is_wrong_further_out(name: str) -> None:
    """What four starts, and all processes at once, can reach."""
    bounds, least = WIDE[name]
    found = search(Rules(), bounds)
    assert not found.violation, str(found)
    assert found.states >= least, str(found)


def test_a_driver_dies_and_is_fenced_off_at_every_commit() -> None:
    """A crash point that is never visited is not covered by any number of states."""
    done = search(Rules(), Bounds((0, None), writers=2, tokens=2)).done
    for table in ("slices/0", "quarantine", "master", "ledger"):
        for ending in ("", ": fenced off"):
            assert any("commits" in label and label.endswith(f"to {table}{ending}") for label in done), table
    assert "1 dies" in done
