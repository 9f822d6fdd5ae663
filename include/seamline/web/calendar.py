"""Intervals as a calendar: what each is to a reader, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Grid, format_utc_instant, parse_moment
from seamline.serve.completeness import Cell

DAY = timedelta(days=1)


class Shade(StrEnum):
    """What an interval of a view is; the worst that can be said of it."""

    CERTIFIED = "certified"
    PROVISIONAL = "provisional"
    OPEN = "open"
    DIRTY = "dirty"
    NEVER = "never built"
    DECIDED = "decided by a person"
    FAILED = "failed"
    HOLED = "holed"


SIGNS: Mapping[Shade, str] = {
    Shade.CERTIFIED: "✓",
    Shade.PROVISIONAL: "~",
    Shade.OPEN: "·",
    Shade.DIRTY: "!",
    Shade.NEVER: "○",
    Shade.DECIDED: "p",
    Shade.FAILED: "✕",
    Shade.HOLED: "?",
}
"""Colour alone says nothing to those who cannot see it."""


@dataclass(frozen=True)
class Square:
    """An interval in a calendar."""

    cell: Cell
    """What is known of the interval."""
    shade: Shade
    """The worst of that, as a colour."""

    @property
    def sign(self) -> str:
        """Return the letter of the shade."""
        return SIGNS[self.shade]


@dataclass(frozen=True)
class Strip:
    """A row of a calendar: a month of days, a day of hours, or a year of longer intervals."""

    label: str
    """The month, day or year."""
    squares: tuple[Square | None, ...]
    """One for each column; None where an interval has no rows."""


def shade_interval(cell: Cell, grid: Grid, watermark: datetime | None, ahead: timedelta) -> Shade:
    """Shade an interval by its worst fact: holes, a red certificate, and then its status.

    It has closed once the watermark is ``ahead`` of its end: so far behind it are rows that count in it.
    """
    if cell.holes:
        return Shade.HOLED
    if cell.failed:
        return Shade.FAILED
    match Status(cell.status):
        case Status.CERTIFIED:
            return Shade.CERTIFIED
        case Status.DIRTY:
            return Shade.DIRTY
        case Status.PROVISIONAL:
            return Shade.PROVISIONAL
        case Status.HELD | Status.UNCERTIFIED:
            return Shade.DECIDED
        case Status.BUILDING:
            return Shade.NEVER
        case Status.OPEN:
            closed = watermark is not None and grid.named(cell.interval).end + ahead <= watermark
            return Shade.NEVER if closed else Shade.OPEN


def shade_cells(
    cells: Iterable[Cell], grid: Grid, watermark: datetime | None, ahead: timedelta
) -> list[Square]:
    """Shade cells."""
    return [Square(cell, shade_interval(cell, grid, watermark, ahead)) for cell in cells]


def find_certified_end(known: Sequence[Square], grid: Grid) -> datetime | None:
    """Find the end of the last interval up to which all that have rows are certified; None if the first is not."""
    end = None
    for each in sorted(known, key=lambda each: each.cell.interval):
        if each.shade is not Shade.CERTIFIED:
            break
        end = grid.named(each.cell.interval).end
    return end


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
