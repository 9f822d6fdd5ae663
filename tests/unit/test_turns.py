"""Views that are behind: how far a step goes, and when the next is tried."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from seamline.model.epoch import Epoch
from seamline.plan.epochs import Turns, step_end

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEDGER = [
    Epoch(at, 1, NOW, "v", accepted={"day": rows}) for at, rows in ((0, 5), (1, 5), (3, 0), (4, 20), (7, 1))
]


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
    assert step_end(LEDGER, after, most) == last


def test_a_view_that_fails_is_tried_ever_less_often() -> None:
    """Live epochs wait for each try; once it moves it goes on at once, and the next failure is the first again."""
    turns, waits = Turns(0), []
    for _ in range(6):
        before = turns.at
        turns = turns.taken(before, moved=False, behind=True)
        waits.append(turns.at - before)
    assert waits == [15, 30, 60, 120, 120, 120]
    moving = turns.taken(turns.at, moved=True, behind=True)
    assert moving.at == turns.at
    assert moving.taken(0, moved=False, behind=True).at == 15


def test_where_no_view_is_behind_the_look_is_cheap_and_regular() -> None:
    """Whichever was behind before."""
    assert Turns(0).taken(100, moved=True, behind=False).at == 115
    assert Turns(0, wait=120).taken(100, moved=False, behind=False) == Turns(115)
