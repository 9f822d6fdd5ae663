"""Which windows are asked for, and which panes must be read for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from seamline.lake.engine.windowing import END, START, Numbers, read_numpy_column
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.intervals import EPOCH, parse_moment
from seamline.model.time.window_arithmetic import FIRST, LAST, Bounds, Gaps, Ruling, Whole
from seamline.model.time.zone_clock import MICROSECOND


@dataclass(frozen=True)
class Span:
    """The windows that are asked for."""

    start: int = FIRST
    """The first start, inclusive, in microseconds since 1970."""
    end: int = LAST
    """The bound of the starts, exclusive, in microseconds since 1970."""
    intervals: frozenset[int] | None = None
    """Starts, in microseconds since 1970, of the intervals that windows start in; None for all."""

    @classmethod
    def between(cls, start: datetime | None, end: datetime | None) -> Span:
        """Return the windows that start in ``[start, end)``."""
        return cls(to_unix_micros(start) if start else FIRST, to_unix_micros(end) if end else LAST)

    def panes(self, view: CompiledView) -> list[Bounds]:
        """List the panes of those windows: of sessions the least, they may go on beyond."""
        length = view.interval // MICROSECOND
        pieces = [(self.start, self.end)]
        if self.intervals is not None:
            pieces = merge_bounds((at, at + length) for at in self.intervals)
        return merge_bounds(view.windows.panes(*piece) for piece in pieces)

    def of(self, view: CompiledView, found: pa.Table) -> pa.Table:
        """Keep the windows that are asked for."""
        starts = read_numpy_column(found, START)
        kept = (starts >= self.start) & (starts < self.end)
        if self.intervals is not None:
            length = view.interval // MICROSECOND
            kept &= np.isin(starts // length * length, np.array(list(self.intervals), np.int64))
        return found if kept.all() else found.filter(pa.array(kept))


def merge_bounds(pieces: Iterable[Bounds]) -> list[Bounds]:
    """Join bounds that overlap or touch; leave empty ones out."""
    found: list[Bounds] = []
    for low, high in sorted(piece for piece in pieces if piece[0] < piece[1]):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def is_within_bounds(
    values: Numbers, panes: Sequence[Bounds], length: int = 0
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which spans of ``length`` (or instants) that start at ``values`` meet some bounds."""
    found = np.zeros(len(values), np.bool_)
    for low, high in panes:
        found |= (values + max(length, 1) > low) & (values < high)
    return found


def extend_bounds_forward(
    view: CompiledView, found: pa.Table, panes: Sequence[Bounds], attempt: int
) -> list[Bounds] | None:
    """Return wider bounds where a session that is asked for may go on beyond what was read; None if none does."""
    if not isinstance(view.windows, Gaps) or not found.num_rows:
        return None
    starts, ends = read_numpy_column(found, START), read_numpy_column(found, END)
    wider = []
    for low, high in panes:
        goes_on = (starts >= low) & (starts < high) & (ends > high)
        wider.append((low, high + (view.windows.interval << attempt) if goes_on.any() else high))
    return merge_bounds(wider) if wider != list(panes) else None


def extend_bounds_back(
    view: CompiledView, found: pa.Table, panes: Sequence[Bounds], attempt: int
) -> list[Bounds] | None:
    """Return wider bounds where a session may have begun before what was read; None if none can."""
    if not isinstance(view.windows, Gaps) or not found.num_rows:
        return None
    starts, ends = read_numpy_column(found, START), read_numpy_column(found, END)
    wider = []
    for low, high in panes:
        goes_on = (starts - view.windows.gap < low) & (ends > low)
        wider.append((low - (view.windows.interval << attempt) if goes_on.any() else low, high))
    return merge_bounds(wider) if wider != list(panes) else None


def list_starting_intervals(
    view: CompiledView, touched: Collection[int], sessions: pa.Table | None
) -> frozenset[int]:
    """List the intervals in which the windows start that have an instant in one of ``touched``.

    Of sessions these are those found, which were within a gap of the touched intervals, and what they may have
    been before: one that was joined to another, or split from it.
    """
    length = view.interval // MICROSECOND
    found: set[int] = set()
    for at in touched:
        match view.windows:
            case Ruling() as ruling:
                first, last = ruling.starts(at, at + length)
            case Whole(start=start):
                first = last = start
            case Gaps() as gaps:
                first, last = at - gaps.gap, at + length + gaps.gap - 1
                if sessions is not None:
                    starts, ends = read_numpy_column(sessions, START), read_numpy_column(sessions, END)
                    near = (starts <= last) & (ends > first)
                    first = min(first, *starts[near].tolist(), last)
        found.update(range(first // length * length, last + 1, length))
    return frozenset(found)


def to_unix_micros(moment: datetime) -> int:
    """Return microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def parse_interval_ids(ids: Collection[str]) -> frozenset[int]:
    """Return the starts of intervals by their ids."""
    return frozenset(to_unix_micros(parse_moment(id)) for id in ids)
