"""Intervals of event time: the unit of batch work, half-open and UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from seamline.model.errors import BadRange, DefinitionError, OutsideLife

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""No pipeline starts before the first, and no event is of the last or later: what is beside it has no date."""
LONGEST = datetime.max.replace(tzinfo=UTC)
MOST_DURATION = timedelta(days=3_650_000)
"""About as long as the calendar."""
UNITS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def parse_duration(text: str, *, zero: bool = False) -> timedelta:
    """Read ``"10 minutes"`` or ``"1 day"``; positive (or ``zero``, where that is one), else DefinitionError."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]+?)s?\s*", text.lower()) if isinstance(text, str) else None
    if not found or found[2] not in UNITS or (not found[1].strip("0") and not zero):
        raise DefinitionError(
            f"{text!r} is not a duration.", hint=f'write "10 minutes"; units are {", ".join(UNITS)}.'
        )
    units, unit = found[1].lstrip("0") or "0", UNITS[found[2]]
    if len(units) > len(str(MOST_DURATION // unit)) or int(units) * unit > MOST_DURATION:
        raise DefinitionError(
            f"{text[:40]!r} is longer than {format_exact_duration(MOST_DURATION)}.",
            hint="use a shorter one: no event is that far from another.",
        )
    return int(units) * unit


def format_exact_duration(span: timedelta) -> str:
    """Write a duration by the largest unit of which it has a whole number, as ``parse_duration`` reads it."""
    for name, unit in reversed(UNITS.items()):
        if span and not span % unit:
            return f"{span // unit} {name}{'' if span == unit else 's'}"
    return f"{span // timedelta(microseconds=1)} microseconds" if span else "0 seconds"


def parse_moment(text: str) -> datetime:
    """Read an ISO date or date-time as a UTC instant; without a zone it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRange(
            f"{text!r} is not a date or a time.", hint='write "2013-03-01" or "2013-03-01T06:00Z".'
        ) from None


def parse_named_moment(name: str, text: str) -> datetime:
    """Read an instant as ``parse_moment`` does; BadRange begins with the name of the option or field."""
    try:
        return parse_moment(text)
    except BadRange as error:
        raise BadRange(f"{name}: {error.message}", hint=error.hint) from None


def format_utc_instant(moment: datetime) -> str:
    """Write an instant as ``2013-03-01T00:00:00Z`` (fractions only where there are any); without a zone it is UTC."""
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat().replace("+00:00", "Z")


def floor_to(moment: datetime, size: timedelta) -> datetime:
    """Return the start of the aligned span of ``size`` that contains ``moment``."""
    return EPOCH + (moment - EPOCH) // size * size


@dataclass(frozen=True, order=True)
class Interval:
    """A half-open span of event time."""

    start: datetime
    """The first instant that is in, UTC."""
    end: datetime
    """The first that is not, UTC."""

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise BadRange(
                f"{format_utc_instant(self.start)} is not before {format_utc_instant(self.end)}.",
                hint="choose a later end; the end is exclusive.",
            )

    @cached_property
    def id(self) -> str:
        """The start instant; with the grid it names the interval."""
        return format_utc_instant(self.start)

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def overlaps(self, other: Interval) -> bool:
        """Return whether the two share an instant."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"{format_utc_instant(self.start)}/{format_utc_instant(self.end)}"

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Read ``start/end``, the inverse of ``str``."""
        start, slash, end = text.partition("/")
        if not slash:
            raise BadRange(f"{text!r} is not an interval.", hint='write "2013-03-01/2013-03-08".')
        return cls(parse_moment(start), parse_moment(end))


@dataclass(frozen=True)
class Grid:
    """All intervals of a pipeline, aligned to 1970-01-01."""

    length: timedelta
    """The length of each."""
    start: datetime
    """The first instant that the pipeline knows, UTC."""

    def of(self, moment: datetime) -> Interval:
        """Return the interval that contains ``moment``."""
        return self._from(floor_to(moment, self.length))

    def named(self, id: str) -> Interval:
        """Return the interval of that id."""
        return self._from(parse_moment(id))

    def _from(self, start: datetime) -> Interval:
        # Logs of before LAST was a bound may have rows of the last day that there is.
        return Interval(start, start + self.length if LONGEST - start > self.length else LONGEST)

    def within(self, span: Interval) -> Iterator[Interval]:
        """List the intervals that lie in ``span``; refuse a span that cuts one in two."""
        self.require_borders(span)
        start = span.start
        while start < span.end:
            yield Interval(start, start + self.length)
            start += self.length

    def require_borders(self, span: Interval) -> None:
        """Refuse a span that cuts an interval in two: BadRange."""
        for bound in (span.start, span.end):
            if floor_to(bound, self.length) != bound:
                raise BadRange(
                    f"{format_utc_instant(bound)} is inside an interval of {format_exact_duration(self.length)}.",
                    hint=f"use {format_utc_instant(floor_to(bound, self.length))} or the next boundary.",
                )

    def within_life(self, span: Interval, *, now: datetime) -> list[Interval]:
        """List the intervals in ``span``; OutsideLife for one before the start or one that begins after now."""
        # A span of thousands of years is refused before its intervals are listed.
        self.require_borders(span)
        if span.start < self.start:
            raise OutsideLife(
                f"{format_utc_instant(span.start)} is before the pipeline's start {format_utc_instant(self.start)}.",
                hint=f"ask from {format_utc_instant(self.start)} on.",
            )
        last = Interval(span.end - self.length, span.end)
        if last.start > now:
            raise OutsideLife(
                f"{last} has not begun.",
                hint=f"ask until {format_utc_instant(self.of(now).end)} at most; the end is exclusive.",
            )
        return list(self.within(span))

    def touching(self, span: Interval) -> Iterator[Interval]:
        """List the intervals that share an instant with ``span``."""
        start = floor_to(span.start, self.length)
        while start < span.end:
            found = self._from(start)
            yield found
            start = found.end


def merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Join intervals that touch or overlap into as few spans as possible, in order."""
    joined: list[Interval] = []
    for interval in sorted(intervals):
        if joined and interval.start <= joined[-1].end:
            joined[-1] = Interval(joined[-1].start, max(joined[-1].end, interval.end))
        else:
            joined.append(interval)
    return joined
