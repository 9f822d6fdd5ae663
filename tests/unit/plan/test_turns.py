"""Views that are behind: how far a step goes, and whose turn it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.shop import Sale, Shop

from seamline.plan.stream.epoch_numbers import AWAITED, Turns, count_tasks, step_end

SIZES = {0: 5, 1: 5, 3: 0, 4: 20, 7: 1}


@pytest.mark.parametrize(
    ("after", "most", "last"),
    [
        (-1, 10, 3),
        (-1, 9, 0),
        (-1, 1, 0),
        (3, 1, 4),
        (4, 1, 7),
        (7, 1, 7),
        (9, 1, 9),
        (-1, 31, 7),
        (0, 30, 7),
    ],
)
def test_a_step_is_of_so_many_rows_but_of_one_epoch_at_least(after: int, most: int, last: int) -> None:
    """Epochs are not divided, and numbers may be missing."""
    assert step_end(SIZES, after, most) == last


def test_what_a_step_may_hold_is_read_without_the_rest_of_the_ledger(tmp_path: Path) -> None:
    """A view may be behind by a million epochs."""
    shop = Shop(tmp_path)
    for sales in ([Sale(1), Sale(2)], [], [Sale(3)]):
        shop.epoch(sales)
    assert shop.ledger.read_sizes(-1, 9) == {0: 2, 1: 0, 2: 1}
    assert shop.ledger.read_sizes(0, 1) == {1: 0}
    assert [epoch.number for epoch in shop.ledger.read_after(0, 1)] == [1]
    assert [epoch.number for epoch in shop.ledger.read_after(0)] == [1, 2]


def test_a_view_that_fails_is_tried_ever_less_often() -> None:
    """Live epochs wait for each try; once it moves it goes on at once, and its next failure is the first again."""
    turns, now, waits = Turns(), 0.0, []
    for _ in range(6):
        assert turns.next_view({"a": 0}, now) == "a"
        turns = turns.record_step("a", now, moved=False)
        assert turns.next_view({"a": 0}, now) == ""
        waits.append(turns.due["a"] - now)
        now = turns.due["a"]
    assert waits == [15, 30, 60, 120, 120, 120]
    moving = turns.record_step("a", now, moved=True)
    assert moving == Turns()
    assert moving.record_step("a", now, moved=False).due == {"a": now + 15}


def test_the_one_that_is_furthest_behind_is_first_and_none_waits_for_one_that_fails() -> None:
    """Each has its own wait."""
    turns = Turns()
    assert turns.next_view({"a": 5, "b": 3}, 0) == "b"
    turns = turns.record_step("b", 0, moved=False)
    assert turns.next_view({"a": 5, "b": 3}, 0) == "a"
    assert turns.record_step("a", 0, moved=True).next_view({"a": 9, "b": 3}, 1) == "a"
    assert turns.next_view({"a": 5, "b": 3}, 15) == "b"
    assert turns.next_view({}, 15) == ""


@pytest.mark.parametrize(("records", "count"), [(0, 1), (1, 1), (20_000, 1), (20_001, 2), (1_000_000, 50)])
def test_a_small_epoch_is_one_task(records: int, count: int) -> None:
    """A task costs as much by itself as a few thousand records, and makes a file."""
    assert count_tasks(records) == count


def test_a_view_that_waits_for_a_build_is_tried_soon() -> None:
    """However long it has waited: what it waits for comes from outside, and is cheap to ask for."""
    turns, now, waits = Turns(), 0.0, []
    for _ in range(9):
        turns = turns.record_step("v", now, moved=False, awaits_build=True)
        waits.append(turns.due["v"] - now)
        now = turns.due["v"]
    assert set(waits) == {AWAITED}
