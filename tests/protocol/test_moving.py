"""A warehouse that moves: whatever sleeps or dies, never both places take writes, and none lacks what the other had."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.protocol.model.moving import OPEN, Place, Rules, State, moves, search

PAIR = {"last_copy", "under_lease"}


def test_never_both_places_are_open() -> None:
    """Two attempts, a person who takes them back, streams in both places, and leases that run out at any point."""
    states, bad = search(Rules(), records=2)
    assert bad is None, bad
    assert states > 5_000


@pytest.mark.parametrize("rule", sorted({each.name for each in fields(Rules)} - PAIR))
def test_a_rule_of_moves_that_is_turned_off_is_missed(rule: str) -> None:
    """Each excludes something."""
    _, bad = search(replace(Rules(), **{rule: False}))
    assert bad is not None


def test_of_what_was_written_last_one_of_two_rules_is_enough() -> None:
    """Under the lease nobody writes; without it what was written is copied after nobody may."""
    for rule in PAIR:
        assert search(replace(Rules(), **{rule: False}))[1] is None
    assert search(replace(Rules(), **dict.fromkeys(PAIR, False)))[1] is not None


def test_a_move_comes_to_its_end_and_may_be_taken_back() -> None:
    """The rules do not win by forbidding everything."""
    seen, level = set(), [State(Place(OPEN), Place(), steps=(0, 0, 0))]
    while level:
        state = level.pop()
        if state not in seen:
            seen.add(state)
            level += [after for _, after in moves(state, Rules(), records=1)]
    assert any(each.new.mark == OPEN for each in seen)
    assert any(each.new.mark.endswith("back") and each.old.mark == OPEN for each in seen)
    assert any(dict(each.decided) == {"m1": "given up", "m2": "opened"} for each in seen)
