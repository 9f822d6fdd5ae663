"""Which intervals a view's rows of one interval are made of: its neighbours as well, where rows are joined."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Protocol

from seamline.model.time.intervals import Grid, Interval


class Reaching(Protocol):
    """What has a reach: a view."""

    @property
    def before(self) -> timedelta:
        """How far before an interval rows may be that are counted in it."""

    @property
    def after(self) -> timedelta:
        """How far behind it they may be."""


def widen_by_reach(grid: Grid, interval: Interval, view: Reaching) -> Interval:
    """Return the span in which the rows are that an interval is made of; none is before the pipeline's start."""
    return Interval(max(interval.start - view.before, grid.start), interval.end + view.after)


def widen_to_intervals(grid: Grid, interval: Interval, view: Reaching) -> Interval:
    """Return the intervals that have such rows, from the start of the first to the end of the last."""
    wide = widen_by_reach(grid, interval, view)
    return Interval(grid.of(wide.start).start, grid.of(wide.end - timedelta(microseconds=1)).end)


def list_reaching_intervals(grid: Grid, interval: Interval, view: Reaching) -> Iterator[Interval]:
    """List the intervals that may be made of rows of one: each reaches as far behind itself as this one before it."""
    reached = Interval(max(interval.start - view.after, grid.start), interval.end + view.before)
    return iter(grid.touching(reached))
