"""How a build of joined rows is parted: by the time of the left row, since right rows are near."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from seamline.model.time.intervals import Interval
from seamline.model.time.reached_intervals import Reaching
from seamline.plan.batch.work_shares import LEAST

ROWS = 2_000_000
"""Rows that a task joins, about."""
SHORTEST = 2
"""A slice is so many times as long as its reach where it can be: rows in reach of two slices are read by both."""
MOST_TIMES = 4
"""How often a build may read the bytes of its files before Spark's own shuffle is the better way."""


@dataclass(frozen=True)
class TimedFile:
    """A file of the log with the bounds of its rows' event times."""

    path: str
    """Absolute."""
    size: int
    """Bytes."""
    rows: int
    """Rows."""
    first: datetime
    """The least event time, inclusive."""
    last: datetime
    """The greatest one, inclusive."""
    again: bool = False
    """Whether its rows were validated again."""

    def meets(self, span: Interval) -> bool:
        """Return whether it may have rows of a span."""
        return self.first < span.end and self.last >= span.start


@dataclass(frozen=True)
class Slice:
    """What a task does: the left rows of ``span`` are joined with those near them."""

    span: Interval
    """The event times of left rows, and of the rows that are counted."""
    files: tuple[TimedFile, ...]
    """The files that may have rows in reach of it."""
    built: bool
    """Whether its rows are built; else they are only counted, as rows in reach of what is built."""


def plan_slices(
    files: Sequence[TimedFile],
    spans: Iterable[Interval],
    wide: Iterable[Interval],
    view: Reaching,
    slots: int,
) -> list[Slice] | None:
    """Part ``spans`` into slices, and count what else of ``wide`` is read; None where files are not in order of time.

    ``spans`` and ``wide`` are apart and in order; every span lies in one of ``wide``.
    """
    built = list(spans)
    made = [
        Slice(part, find_near(files, reach_of(part, view)), built=True)
        for span in built
        for part in cut(span, files, view, slots)
    ]
    made += [
        Slice(rest, find_near(files, rest), built=False) for span in wide for rest in leave_out(span, built)
    ]
    touched = sum(each.size for slice in made for each in slice.files)
    whole = sum(each.size for each in files if any(each.meets(slice.span) for slice in made))
    return None if touched > MOST_TIMES * max(whole, LEAST) else [each for each in made if each.files]


def find_near(files: Iterable[TimedFile], span: Interval) -> tuple[TimedFile, ...]:
    """Find the files that may have rows of a span."""
    return tuple(each for each in files if each.meets(span))


def reach_of(span: Interval, view: Reaching) -> Interval:
    """Return the event times of the rows that left rows of a span may be joined with, and of these."""
    return Interval(span.start - view.before, span.end + view.after)


def cut(span: Interval, files: Iterable[TimedFile], view: Reaching, slots: int) -> Iterator[Interval]:
    """Cut a span into parts of equal length: one for each core where that is worth it, more where rows are many."""
    near = find_near(files, reach_of(span, view))
    rows, size = sum(each.rows for each in near), sum(each.size for each in near)
    length = span.end - span.start
    reach = max(view.before + view.after, timedelta(microseconds=1))
    few = min(slots, size // LEAST, length // (SHORTEST * reach))
    count = max(1, few, min(-(-rows // ROWS), length // reach))
    if count > slots:
        count = -(-count // slots) * slots
    borders = [span.start + length * number // count for number in range(count + 1)]
    for start, end in pairwise(borders):
        yield Interval(start, end)


def leave_out(span: Interval, others: Iterable[Interval]) -> Iterator[Interval]:
    """Return the parts of a span that are in none of the others, which are apart and in order."""
    start = span.start
    for each in others:
        if each.end <= start or each.start >= span.end:
            continue
        if start < each.start:
            yield Interval(start, each.start)
        start = each.end
    if start < span.end:
        yield Interval(start, span.end)
