"""What an interval of a view is to a reader: the worst that can be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Grid
from seamline.serve.completeness import Cell


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
STATUSES: Mapping[str, Status] = {each.value: each for each in Status}


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


def shade_interval(cell: Cell, grid: Grid, watermark: datetime | None, ahead: timedelta) -> Shade:
    """Shade an interval by its worst fact: holes, a red certificate, and then its status.

    It has closed once the watermark is ``ahead`` of its end: so far behind it are rows that count in it.
    """
    if cell.holes:
        return Shade.HOLED
    if cell.failed:
        return Shade.FAILED
    match STATUSES[cell.status]:
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
    last = None
    for each in sorted(known, key=lambda each: each.cell.interval):
        if each.shade is not Shade.CERTIFIED:
            break
        last = each.cell.interval
    return None if last is None else grid.named(last).end
