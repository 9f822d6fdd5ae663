"""Two ranges laid beside each other by the clock: which window belongs to which, and which has none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from seamline.model.errors import BadRange
from seamline.model.time.intervals import Interval, parse_named_moment
from seamline.web.drawn.wall_clock import Reading

DAY = timedelta(days=1)
SHIFTS = {
    "previous": "the range before",
    "day": "a day before",
    "week": "a week before",
    "weeks52": "52 weeks before (the same weekdays)",
    "year": "a year before (the same dates)",
}
DAYS = {"day": 1, "week": 7, "weeks52": 364}


@dataclass(frozen=True)
class Shift:
    """How far another range is before this one, by the clock."""

    span: timedelta = timedelta(0)
    """A time by the clock; negative if the other range is later."""
    years: int = 0
    """Years of the calendar instead, of which the dates are the same."""

    def back(self, wall: datetime) -> datetime | None:
        """Return what the clock shows in the other range; None for a date that its year does not have."""
        try:
            return wall.replace(year=wall.year - self.years) - self.span
        except (ValueError, OverflowError):
            return None

    def forth(self, wall: datetime) -> datetime | None:
        """Return what the clock shows in this range when it shows ``wall`` in the other one."""
        return Shift(-self.span, -self.years).back(wall)


@dataclass(frozen=True)
class WindowPair:
    """A window of this range and that of the other at the same time by the clock."""

    this: datetime | None
    """When it starts in this range, None where it has none."""
    other: datetime | None
    """When it starts in the other one."""
    shown: bool = True
    """Whether clocks show this time in both."""
    place: datetime | None = None
    """Where it lies in the time of this range; None if it is in the other alone, at a time that this does not show."""


def read_shift(against: str, span: Interval, zone: ZoneInfo) -> Shift:
    """Read what a range is compared with: a name of SHIFTS, or an instant; BadRange for anything else."""
    start, end = Reading.at(span.start, zone).wall, Reading.at(span.end, zone).wall
    if against in ("", "previous"):
        # Of a range within the hour that is shown twice the clock says no length.
        return Shift(end - start if end > start else span.end - span.start)
    if against == "year":
        return Shift(years=1)
    if against in DAYS:
        return Shift(DAYS[against] * DAY)
    return Shift(start - Reading.at(parse_named_moment("other start", against), zone).wall)


def shift_range(span: Interval, shift: Shift, zone: ZoneInfo) -> Interval:
    """Return the other range; BadRange where the calendar has none."""
    bounds = []
    for bound in (span.start, span.end):
        reading = Reading.at(bound, zone)
        # The 29th of February begins where the 1st of March does in a year without it.
        wall = shift.back(reading.wall) or shift.back(Shift(-DAY).back(reading.wall) or reading.wall)
        if wall is None or not 2 <= wall.year < 9999:
            raise BadRange("There is no such range in the calendar.", hint="compare with a later one.")
        bounds.append(Reading(wall, reading.again).moment(zone))
    start, end = bounds
    # A range within the hour that is shown twice may end before it starts by the clock: it is as long as this one.
    return Interval(start, end if start < end else start + (span.end - span.start))


def is_shown(reading: Reading, zone: ZoneInfo) -> bool:
    """Return whether clocks of a zone ever show this."""
    return Reading.at(reading.moment(zone), zone) == reading


def pair_windows(
    starts: Iterable[datetime], others: Iterable[datetime], shift: Shift, zone: ZoneInfo
) -> list[WindowPair]:
    """Pair windows by what the clock shows when they start; those without a partner are pairs of one. In order."""
    left = {Reading.at(each, zone): each for each in others}
    found: list[tuple[Reading, WindowPair]] = []
    for start in starts:
        reading = Reading.at(start, zone)
        wall = shift.back(reading.wall)
        sought = Reading(wall, reading.again) if wall else None
        other = left.pop(sought, None) if sought else None
        shown = other is not None or (sought is not None and is_shown(sought, zone))
        found.append((reading, WindowPair(start, other, shown, start)))
    for reading, other in left.items():
        wall = shift.forth(reading.wall)
        place = Reading(wall or reading.wall + shift.span + 365 * shift.years * DAY, reading.again)
        shown = wall is not None and is_shown(place, zone)
        found.append((place, WindowPair(None, other, shown, place.moment(zone) if shown else None)))
    # Of an hour that is shown twice all of the first time comes before the second, also of windows of minutes.
    return [pair for _, pair in sorted(found, key=lambda each: (each[0].moment(zone), each[0]))]
