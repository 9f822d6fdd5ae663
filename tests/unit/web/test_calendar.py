"""What an interval is called on the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Grid
from seamline.serve.completeness import Cell
from seamline.serve.trust.interval_shades import Shade, shade_interval

GRID = Grid(timedelta(days=1), datetime(2026, 3, 1, tzinfo=UTC))
DAY = Cell(
    view="by_shop",
    version="abc",
    interval="2026-03-02T00:00:00Z",
    status=Status.OPEN.value,
    failed=False,
    holes=0,
    rows=9,
    since=9,
    cut=-1,
    generation="",
    run="",
)


def shade(day: int, ahead: int) -> Shade:
    """Shade the day when the watermark is at the start of another, for a join that reaches days ahead."""
    return shade_interval(DAY, GRID, datetime(2026, 3, day, tzinfo=UTC), timedelta(days=ahead))


def test_a_day_is_open_for_as_long_as_rows_may_come_that_are_joined_with_its_own() -> None:
    """Called never built, it would count as a debt for a fortnight in which nothing may build it."""
    assert shade(2, 0) is Shade.OPEN
    assert shade(3, 0) is Shade.NEVER
    assert shade(3, 14) is Shade.OPEN
    assert shade(16, 14) is Shade.OPEN
    assert shade(17, 14) is Shade.NEVER
    assert shade_interval(DAY, GRID, None, timedelta(0)) is Shade.OPEN
