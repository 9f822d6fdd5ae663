"""What a plan will read and how long that may take: from the master's files and from past builds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from statistics import median

from seamline.model.time.intervals import Grid
from seamline.model.time.reached_intervals import Reaching, widen_by_reach
from seamline.plan.batch.batch_plan import BatchPlan

REMEMBERED = 40
"""How many of the newest attempts an estimate is made from: the machine and the definition change."""


@dataclass(frozen=True)
class MasterFile:
    """A file of the master: its bytes, its first and last event time (both in), and its first epoch."""

    size: int
    """Bytes."""
    first: datetime
    """The first event time in it."""
    last: datetime
    """The last event time in it."""
    epoch: int
    """The first epoch in it."""


@dataclass(frozen=True)
class Attempt:
    """A past build."""

    rows: int
    """The rows that it read."""
    seconds: float
    """The seconds that it took."""


@dataclass(frozen=True)
class Pace:
    """How long builds take."""

    fixed: float
    """Seconds of each build."""
    per_row: float
    """Seconds for each row."""
    least: int
    """Rows below which the past says nothing but ``fixed``."""
    runs: int
    """How many past builds this is from."""

    @classmethod
    def of(cls, attempts: Sequence[Attempt]) -> Pace | None:
        """Fit a line by the median of the slopes between pairs (Sen 1968); None where there is no attempt.

        Attempts that all read as many rows have no slope: fewer rows are then taken to last as long, and more
        of them longer in proportion.
        """
        known = [each for each in attempts[-REMEMBERED:] if each.rows]
        if not known:
            return None
        slopes = [
            (b.seconds - a.seconds) / (b.rows - a.rows) for a, b in combinations(known, 2) if a.rows != b.rows
        ]
        if not slopes:
            rows, seconds = known[0].rows, median(each.seconds for each in known)
            return cls(seconds, seconds / rows, rows, len(known))
        slope = max(median(slopes), 0.0)
        fixed = median(each.seconds - slope * each.rows for each in known)
        return cls(max(fixed, 0.0), slope, 0, len(known))

    def seconds(self, rows: int) -> float:
        """Estimate a build of so many rows."""
        return self.fixed + self.per_row * max(rows - self.least, 0)


def add_cost_estimates(
    plan: BatchPlan,
    files: Iterable[MasterFile],
    attempts: Sequence[Attempt],
    grid: Grid | None = None,
    views: Collection[Reaching] = (),
) -> BatchPlan:
    """Add the bytes of the files whose event times meet an interval, and the seconds that past builds suggest.

    An interval is made of all in reach of its ``views``.
    """
    spans = [[widen_by_reach(grid, each.interval, view) for view in views if grid] for each in plan.builds]
    spans = [[each.interval, *wide] for each, wide in zip(plan.builds, spans, strict=True)]
    starts = [min(each.start for each in wide) for wide in spans]
    ends = [max(each.end for each in wide) for wide in spans]
    sizes = [0] * len(starts)
    total = 0
    for file in files:
        met = range(bisect_right(ends, file.first), bisect_right(starts, file.last))
        if file.epoch > plan.cut or not met:
            continue
        total += file.size
        for at in met:
            sizes[at] += file.size
    builds = tuple(replace(build, bytes=size) for build, size in zip(plan.builds, sizes, strict=True))
    pace = Pace.of(attempts)
    return replace(
        plan, builds=builds, bytes=total, seconds=pace.seconds(plan.rows) if pace and builds else None
    )
