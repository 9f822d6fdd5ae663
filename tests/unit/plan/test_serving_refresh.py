"""What of a serving table an epoch changes: the days of its rows, and those that they are joined with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.model.test_joins import ADS

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.serving_refresh import list_changed_intervals

PIPELINE = compile_pipeline(ADS)
[VIEW] = PIPELINE.views
DAYS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 8)]
START = datetime(2026, 1, 1, tzinfo=UTC)


def epoch(number: int, day: int, mark: timedelta) -> Epoch:
    """Return an epoch of a row of one day, with the watermark from it on."""
    return Epoch(number, 1, START, "v", accepted={DAYS[day]: 1}, watermark=START + mark)


def test_a_row_changes_what_is_joined_with_it() -> None:
    """A click is shown in the row of its impression, which may be of the day before."""
    rows = [epoch(0, 3, timedelta(hours=12)), epoch(1, 4, timedelta(hours=12))]
    changed = list_changed_intervals(rows, 0, PIPELINE.grid, VIEW, timedelta(0))
    assert changed == {DAYS[3], DAYS[4], DAYS[5]}


@pytest.mark.parametrize(("hours", "closed"), [(24, False), (25, True)])
def test_a_day_is_shown_as_complete_once_its_reach_has_passed(hours: int, closed: bool) -> None:
    """Up to an hour later a click may come."""
    before = timedelta(hours=24, minutes=30)
    rows = [epoch(0, 6, before), epoch(1, 6, timedelta(hours=hours, minutes=59))]
    changed = list_changed_intervals(rows, 0, PIPELINE.grid, VIEW, timedelta(0))
    assert changed is not None
    assert DAYS[0] in changed
    assert (DAYS[1] in changed) is closed
