"""Intervals as a calendar: where each stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.serve.trust.interval_shades import Square

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Strip:
    """A row of a calendar: a month of days, a day of hours, or a year of longer intervals."""

    label: str
    """The month, day or year."""
    squares: tuple[Square | None, ...]
    """One for each column; None where an interval has no rows."""


def lay_out_strips(known: Iterable[Square], length: timedelta) -> list[Strip]:
    """Lay intervals out: hours by day, days by month, longer ones by year; oldest first."""
    rows: dict[str, dict[int, Square]] = {}
    for each in known:
        label, column = locate_in_strip(parse_moment(each.cell.interval), length)
        rows.setdefault(label, {})[column] = each
    width = max((max(row) + 1 for row in rows.values()), default=0)
    return [
        Strip(label, tuple(row.get(column) for column in range(width))) for label, row in sorted(rows.items())
    ]


def locate_in_strip(start: datetime, length: timedelta) -> tuple[str, int]:
    """Locate the row and the column of an interval."""
    text = format_utc_instant(start)
    if length < DAY:
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        return text[:10], int((start - midnight) / length)
    if length == DAY:
        return text[:7], start.day - 1
    january = start.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    return text[:4], int((start - january) / length)
