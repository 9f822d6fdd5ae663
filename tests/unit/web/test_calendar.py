"""What an interval is called on the pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Grid, format_utc_instant, parse_moment
from seamline.serve.completeness import Cell
from seamline.serve.trust.interval_shades import Shade, Square, shade_interval
from seamline.web.glance.calendar import lay_out_strips, lay_out_years
from seamline.web.glance.completeness_page import choose_zoom

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


def square(start: str) -> Square:
    """Return an open interval."""
    return Square(replace(DAY, interval=start), Shade.OPEN)


def test_an_interval_of_weeks_is_in_each_month_that_it_touches() -> None:
    """Its bars stand in all of them, and a month without an interval that begins in it can be clicked too."""
    [year] = lay_out_years([square("2026-01-29T00:00:00Z")], Grid(timedelta(days=42), GRID.start))
    assert [month.name for month in year.months if month.tally] == ["2026-01", "2026-02", "2026-03"]
    assert [sum(month.tally.values()) for month in year.months[:4]] == [1, 1, 1, 0]
    assert year.months[1].bars == {Shade.OPEN: "M0 20v-4h28v4z"}


def test_the_last_day_that_there_is_can_be_drawn() -> None:
    """No date is behind it."""
    [year] = lay_out_years([square("9999-12-31T00:00:00Z")], GRID)
    assert year.months[-1].bars == {Shade.OPEN: "M30 20v-4h1v4z"}


@pytest.mark.parametrize(
    ("length", "span", "most"),
    [
        (timedelta(days=7), "2026", 366),
        (timedelta(days=1), "2026", 31),
        (timedelta(hours=1), "2026-03", 24),
        (timedelta(minutes=30), "2026-03", 48),
        (timedelta(minutes=1), "2026-03-03", 60),
        (timedelta(seconds=1), "2026-03-03T02", 3600),
    ],
)
def test_what_is_drawn_in_full_is_no_more_than_a_page_can_show(
    length: timedelta, span: str, most: int
) -> None:
    """A month of seconds would be millions of squares; what is asked for is the newest of a longer span."""
    end = parse_moment("2026-03-03T02:30Z")
    starts = [end - step * length for step in range(2000)]
    known = [square(format_utc_instant(each)) for each in starts if each >= parse_moment("2026-03-01T20:00Z")]
    known = known or [square("2026-03-02T00:00:00Z")]
    chosen = choose_zoom({("by_shop", "abc"): known}, ("", ""), "2026-03", length)
    assert chosen is not None and chosen.span == span
    strips = lay_out_strips(chosen.squares, length)
    assert max(len(each.squares) for each in strips) <= most
    assert sum(one is not None for each in strips for one in each.squares) == len(chosen.squares)
