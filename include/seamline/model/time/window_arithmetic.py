"""The arithmetic of windows, in microseconds since 1970: which windows have an instant, and which panes they need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from seamline.model.time.zone_clock import UTC_CLOCK, Clock

FIRST, LAST = -(2**62), 2**62
Bounds = tuple[int, int]
"""Half-open bounds of panes: the first is in, the second is out."""


@dataclass(frozen=True)
class Ruling:
    """Windows ``[k * slide, k * slide + j * step)`` of the clock's readings, all ``j * step`` up to ``size``.

    Tumbling windows have one length for all three, sliding ones ``step == size``, cumulating ones ``slide == size``.
    """

    size: int
    """Microseconds of the longest window."""
    slide: int
    """Microseconds from one start to the next."""
    step: int
    """Microseconds by which windows of one start differ."""
    origin: int = 0
    """The reading at which a window starts, in microseconds."""
    clock: Clock = UTC_CLOCK
    """The clock of the zone."""

    def pane(self, interval: int) -> int:
        """Return the longest aligned span that crosses no border of a window nor of an interval."""
        changes = [*self.clock.since[1:], *self.clock.ahead]
        return math.gcd(self.size, self.slide, self.step, self.origin, interval, *changes)

    def crosses(self, interval: int) -> bool:
        """Return whether a window may lie over the border of two intervals."""
        changes = [*self.clock.since[1:], *self.clock.ahead]
        return math.gcd(self.size, self.slide, self.origin, interval, *changes) != self.size

    def within(self, pane: int) -> list[Bounds]:
        """List the stretches of time in which borders of windows may lie within panes of some length."""
        if math.gcd(self.size, self.slide, self.step, self.origin, pane) != pane:
            return [(FIRST, LAST)]
        found = []
        for since, end, ahead in zip(
            self.clock.since, (*self.clock.since[1:], LAST), self.clock.ahead, strict=True
        ):
            if ahead % pane:
                found.append((since, end))
            elif since > FIRST and since % pane:
                found.append((since - since % pane, since - since % pane + pane))
        return found

    def at(self, number: int) -> int:
        """Return the instant at which the window of that number starts."""
        return self.clock.first_reaching(self.origin + number * self.slide)

    def ends(self, number: int) -> list[int]:
        """List the ends of the windows that start under a number, each once."""
        start = self.origin + number * self.slide
        return sorted(
            {self.clock.first_reaching(start + grown) for grown in range(self.step, self.size + 1, self.step)}
            - {self.at(number)}
        )

    def last_starting_by(self, instant: int) -> int:
        """Return the number of the last window that starts at or before an instant."""
        return (self.clock.furthest_reading(instant) - self.origin) // self.slide

    def first_ending_after(self, instant: int) -> int:
        """Return the number of the first window that ends after an instant."""
        return (self.clock.furthest_reading(instant) - self.size - self.origin) // self.slide + 1

    def windows_at(self, instant: int) -> Iterator[Bounds]:
        """List the windows that contain an instant, by start and end."""
        for number in range(self.first_ending_after(instant), self.last_starting_by(instant) + 1):
            yield from ((self.at(number), end) for end in self.ends(number) if end > instant)

    def panes(self, start: int, end: int) -> Bounds:
        """Return the bounds of the panes of the windows that start in ``[start, end)``."""
        low = start if start <= FIRST else self.at(self.last_starting_by(start - 1) + 1)
        high = end if end >= LAST else self.at_end(self.last_starting_by(end - 1))
        return low, max(low, high)

    def at_end(self, number: int) -> int:
        """Return the instant at which the longest window of that number ends."""
        return self.clock.first_reaching(self.origin + number * self.slide + self.size)

    def starts(self, start: int, end: int) -> Bounds:
        """Return the starts of the first and of the last window that have an instant in ``[start, end)``."""
        return self.at(self.first_ending_after(start)), self.at(self.last_starting_by(end - 1))


@dataclass(frozen=True)
class Whole:
    """One window without an end."""

    start: int
    """Its start, in microseconds since 1970."""

    def panes(self, start: int, end: int) -> Bounds:
        """Return the bounds of the panes of the window: empty unless it starts in ``[start, end)``."""
        return (FIRST, LAST) if start <= self.start < end else (self.start, self.start)


@dataclass(frozen=True)
class Gaps:
    """Sessions of a key, cut into partial ones at the borders of intervals."""

    gap: int
    """Microseconds without an event that end a session."""
    interval: int
    """Microseconds of an interval."""

    def panes(self, start: int, end: int) -> Bounds:
        """Return the least bounds, whole intervals, for sessions that start in ``[start, end)``.

        What may join such a session from before is within them; where it ends may be further.
        """
        low = start if start <= FIRST else self.floor(start - self.gap)
        return low, end if end >= LAST else -self.floor(-end - self.gap)

    def floor(self, instant: int) -> int:
        """Return the start of the interval that contains an instant."""
        return instant // self.interval * self.interval


Windows = Ruling | Whole | Gaps


def count_reached_intervals(windows: Windows, interval: int) -> int:
    """Say how many intervals before and after an event's own a window that contains it may touch."""
    match windows:
        case Gaps(gap=gap):
            return -(-gap // interval)
        case Ruling(size=size) if windows.crosses(interval):
            return -(-size // interval)
    return 0
