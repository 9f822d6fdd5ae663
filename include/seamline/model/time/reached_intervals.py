"""Which intervals a view's rows of one interval are made of: its neighbours as well, where rows are joined or folded.

A fold goes by event time: what it emits at an instant depends on the rows of its span up to there. So an interval is
made of all from the start of its span to its own end, and rows of it may change it and all later ones of the span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from seamline.model.time.intervals import LONGEST, Grid, Interval, floor_to


class Reaching(Protocol):
    """What has a reach: a view."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def before(self) -> timedelta:
        """How far before an interval rows may be that are counted in it."""

    @property
    def after(self) -> timedelta:
        """How far behind it they may be."""

    @property
    def span(self) -> timedelta:
        """After how long the state of its fold begins anew; zero where it has none."""


Spanning = Mapping[str, Reaching]
"""By id, the views of folds whose spans are longer than an interval."""
Some = TypeVar("Some", bound=Reaching)


def find_spanning_views(grid: Grid, views: Iterable[Some]) -> dict[str, Some]:
    """Find the views, by id, whose rows of an interval are emitted because of rows of earlier ones."""
    return {view.id: view for view in views if view.span > grid.length}


def widen_by_reach(grid: Grid, interval: Interval, view: Reaching) -> Interval:
    """Return the span in which the rows are that an interval is made of; none is before the pipeline's start."""
    start = floor_to(interval.start, view.span) if view.span else interval.start - view.before
    return Interval(max(start, grid.start), interval.end + view.after)


def widen_to_intervals(grid: Grid, interval: Interval, view: Reaching) -> Interval:
    """Return the intervals that have such rows, from the start of the first to the end of the last."""
    wide = widen_by_reach(grid, interval, view)
    return Interval(grid.of(wide.start).start, grid.of(wide.end - timedelta(microseconds=1)).end)


def list_reaching_intervals(grid: Grid, interval: Interval, view: Reaching) -> Iterator[Interval]:
    """List the intervals that may be made of rows of one: each reaches as far behind itself as this one before it."""
    end = find_span_end(interval, view) if view.span else interval.end + view.before
    reached = Interval(max(interval.start - view.after, grid.start), end)
    return iter(grid.touching(reached))


def find_span_end(interval: Interval, view: Reaching) -> datetime:
    """Return where the last span of a fold ends that begins in an interval, or has begun there."""
    if not view.span:
        return interval.end
    start = floor_to(interval.end - timedelta(microseconds=1), view.span)
    return max(interval.end, start + view.span if LONGEST - start > view.span else LONGEST)


def find_closing_mark(end: datetime, views: Iterable[Reaching]) -> datetime:
    """Return the watermark from which on rows before the end of an interval change nothing more by themselves."""
    last = Interval(end - timedelta(microseconds=1), end)
    return max((find_span_end(last, view) + view.after for view in views), default=end)


def list_filled_intervals(grid: Grid, view: Reaching | None, with_rows: Iterable[str]) -> set[str]:
    """List the ids of the intervals in which a view may have rows, by those that have accepted rows.

    Of a fold these are the later ones of their spans, too: a timer may emit something where no row is. ``view`` is None
    for one that has rows where there are accepted ones.
    """
    if view is None:
        return set(with_rows)
    firsts: dict[datetime, Interval] = {}
    for interval in map(grid.named, with_rows):
        end = find_span_end(interval, view)
        firsts[end] = min(interval, firsts.get(end, interval))
    return {each.id for first in firsts.values() for each in list_reaching_intervals(grid, first, view)}


def list_shown_intervals(
    grid: Grid, view: Reaching | None, with_rows: Iterable[str], mark: datetime | None
) -> set[str]:
    """List the ids of the intervals in which a view may show rows at a watermark.

    ``view`` is as for ``list_filled_intervals``; of a fold timers may have fired in intervals up to the watermark's.
    """
    accepted = set(with_rows)
    later = list_filled_intervals(grid, view, accepted) - accepted
    return accepted | {id for id in later if mark is not None and grid.named(id).start <= mark}
