"""Windows, and the panes from which they are merged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.model.intervals import Grid, Interval, floor_to, parse_duration

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Tumbling:
    """Windows of one size that follow each other without a gap, aligned to the epoch, in UTC."""

    size: str

    @property
    def length(self) -> timedelta:
        """Give the size as a duration; DefinitionError where it is none."""
        return parse_duration(self.size)

    def pane(self, interval: timedelta) -> timedelta:
        """Give the longest aligned span that crosses no border of a window nor of an interval."""
        return math.gcd(self.length // MICROSECOND, interval // MICROSECOND) * MICROSECOND

    def of(self, moment: datetime) -> Interval:
        """Give the window that holds ``moment``."""
        start = floor_to(moment, self.length)
        return Interval(start, start + self.length)


def intervals_of(window: Interval, grid: Grid) -> list[Interval]:
    """List the intervals that a window touches: each brings its own generation and cut."""
    return list(grid.touching(window))
