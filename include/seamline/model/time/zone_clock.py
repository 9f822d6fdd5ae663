"""What the clocks of a zone show: the local time by which windows are ruled."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from seamline.model.errors import DefinitionError
from seamline.model.time.intervals import EPOCH, floor_to

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
ALWAYS = -(2**62)
KNOWN_YEARS = 120
"""Changes of the clock are looked up for so many years after a pipeline's start."""


@dataclass(frozen=True)
class Clock:
    """How far a zone's clocks are ahead of UTC.

    Clocks that are put back show some readings twice. A *reading* is therefore the furthest that a clock has shown so
    far: it never falls, ``first_reaching(reading) <= instant`` iff ``reading <= furthest_reading(instant)``.
    """

    since: tuple[int, ...] = (ALWAYS,)
    """The instants of changes, in microseconds since 1970, ascending."""
    ahead: tuple[int, ...] = (0,)
    """By how many microseconds clocks are ahead of UTC from each of them on."""

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """Return for each stretch the furthest reading before it; a clock never quite shows it."""
        ends = [end + ahead for end, ahead in zip(self.since[1:], self.ahead, strict=False)]
        return (ALWAYS, *accumulate(ends, max))

    @property
    def shifts(self) -> frozenset[int]:
        """List by how much the clock is put on or back."""
        return frozenset(abs(after - before) for before, after in pairwise(self.ahead))

    def furthest_reading(self, instant: int) -> int:
        """Return the furthest that clocks have shown up to an instant."""
        at = bisect_right(self.since, instant) - 1
        return max(instant + self.ahead[at], self.tops[at] - 1)

    def first_reaching(self, reading: int) -> int:
        """Return the first instant at which clocks have come as far as a reading."""
        at = bisect_right(self.tops, reading) - 1
        return max(self.since[at], reading - self.ahead[at])

    def fixed(self) -> Clock:
        """Return a clock that is never put on or back."""
        return Clock(ahead=self.ahead[:1])


UTC_CLOCK = Clock()


@lru_cache(maxsize=64)
def clock_of(zone: str, start: datetime) -> Clock:
    """Look up a zone's clock from ``start`` on; DefinitionError for a zone that is not known."""
    if zone == "UTC":
        return UTC_CLOCK
    from zoneinfo import ZoneInfo  # It brings sysconfig along, which the set-up must do without.

    try:
        info = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise DefinitionError(
            f"{zone!r} is not a time zone.",
            hint='use a name of the IANA database: "America/New_York".',
            field="zone",
        ) from None
    changes = list(changes_of(info, floor_to(start, DAY) - DAY))
    first, *later = changes
    return Clock(
        (ALWAYS, *(at // MICROSECOND for at, _ in later)),
        tuple(ahead // MICROSECOND for _, ahead in [first, *later]),
    )


def changes_of(zone: ZoneInfo, start: datetime) -> Iterator[tuple[timedelta, timedelta]]:
    """List since when (from 1970) a zone is how far ahead of UTC, the state at ``start`` first."""

    def ahead(moment: datetime) -> timedelta:
        return zone.utcoffset(moment.astimezone(zone)) or timedelta()

    moment, current = start, ahead(start)
    yield start - EPOCH, current
    end = start + KNOWN_YEARS * 365 * DAY
    while moment < end:
        if (found := ahead(moment + DAY)) != current:
            low, high = moment, moment + DAY
            while high - low > SECOND:
                middle = low + (high - low) // (2 * SECOND) * SECOND
                low, high = (middle, high) if ahead(middle) == current else (low, middle)
            current = found
            yield high - EPOCH, current
        moment += DAY
