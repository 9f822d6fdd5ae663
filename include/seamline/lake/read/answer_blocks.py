"""A large answer in blocks of time that fit into memory, by what files say of themselves.

A window is in one block, by its start; the panes of windows that reach over the border are read for both blocks.
Sessions and windows without an end are one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.pane_ranges import Span
from seamline.lake.engine.windowing import Numbers
from seamline.lake.read.answering_files import generation_files, marks_of, slice_files
from seamline.lake.read.file_cache import UNPACKED
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.protocol.seam import Side
from seamline.model.time.window_arithmetic import (
    FIRST,
    LAST,
    Bounds,
    Ruling,
    count_reached_intervals,
)
from seamline.model.time.zone_clock import MICROSECOND

SHARED = 4
"""A block is at least so many times as long as the longest window that reaches over its border."""


@dataclass(frozen=True)
class Block:
    """The windows that start in some span of time."""

    span: Span
    """The windows."""
    panes: Sequence[Bounds]
    """What must be read for them."""
    size: int
    """Bytes in memory of their states, about."""

    @property
    def first(self) -> int:
        """The first pane, in microseconds since 1970."""
        return self.panes[0][0]


@dataclass(frozen=True)
class Volumes:
    """Bytes in memory by interval, as if each file's were even over the intervals that it spans."""

    points: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Numbers of intervals from 1970, ascending: between two of them the density is the same."""
    totals: np.ndarray[tuple[int], np.dtype[np.float64]]
    """Bytes before each point."""

    @classmethod
    def of(cls, first: Numbers, last: Numbers, sizes: Numbers) -> Volumes:
        """Add up files, of which each has its first and its last interval."""
        points = np.unique(np.concatenate([first, last + 1]))
        change, each = np.zeros(len(points)), sizes / (last + 1 - first)
        np.add.at(change, np.searchsorted(points, first), each)
        np.subtract.at(change, np.searchsorted(points, last + 1), each)
        totals = np.cumsum(np.cumsum(change)[:-1] * np.diff(points)) if len(points) else np.zeros(0)
        return cls(points, np.concatenate([[0.0], totals]) if len(points) else totals)

    def between(self, low: float, high: float) -> int:
        """Return the bytes between two instants, in numbers of intervals."""
        if not len(self.points):
            return 0
        before, after = np.interp([low, high], self.points, self.totals)
        return int(after - before)

    def cuts(self, most: int, shortest: int) -> list[int]:
        """List the intervals at which blocks begin, after the first."""
        if not len(self.points):
            return []
        aims = np.arange(1, np.ceil(self.totals[-1] / most)) * most
        found: list[int] = []
        for cut in np.unique(np.floor(np.interp(aims, self.totals, self.points)).astype(np.int64)).tolist():
            if cut - (found[-1] if found else int(self.points[0])) >= shortest:
                found.append(cut)
        return found


def list_blocks(snapshot: Snapshot, span: Span, side: Side, most: int) -> list[Block]:
    """List the blocks of an answer, which have ``most`` bytes each if they can, in the order of their windows."""
    view, length = snapshot.view, snapshot.grid.length // MICROSECOND
    panes = span.panes(view)
    if not panes:
        return []
    volumes = measure_volumes(snapshot, panes, side)
    cuts = []
    if isinstance(view.windows, Ruling):
        shortest = max(1, SHARED * count_reached_intervals(view.windows, length))
        cuts = [cut * length for cut in volumes.cuts(most, shortest)]
    found = []
    for start, end in zip([FIRST, *cuts], [*cuts, LAST], strict=True):
        part = replace(span, start=max(span.start, start), end=min(span.end, end))
        own = panes if not cuts else part.panes(view) if part.start < part.end else []
        if own:
            found.append(Block(part, own, volumes.between(own[0][0] / length, own[-1][1] / length)))
    return found


def measure_volumes(snapshot: Snapshot, panes: Sequence[Bounds], side: Side) -> Volumes:
    """Measure what would be read of some panes."""
    marks, length = marks_of(snapshot, side), snapshot.grid.length // MICROSECOND
    pieces: list[tuple[Numbers, Numbers, Numbers]] = []
    generations, slices = generation_files(snapshot, marks, panes), slice_files(snapshot, marks, panes)
    if generations and generations.actions.num_rows:
        place = pc.index_in(generations.partition("interval").cast(pa.string()), marks["_interval"])
        at = pc.take(marks["_at"], place).to_numpy() // length
        pieces.append((at, at, measure_files(generations.actions)))
    if slices and slices.actions.num_rows:
        bounds = [each.cast(INSTANT).cast(pa.int64()) for each in (slices.low("pane"), slices.high("pane"))]
        known = [
            int(each) for column in bounds for each in pc.min_max(column).as_py().values() if each is not None
        ]
        low, high = (min(known), max(known)) if known else (0, 0)
        first, last = (
            np.clip(pc.fill_null(column, other).to_numpy(), panes[0][0], max(panes[-1][1] - 1, panes[0][0]))
            // length
            for column, other in zip(bounds, (low, high), strict=True)
        )
        pieces.append((first, last, measure_files(slices.actions)))
    none = np.zeros(0, np.int64)
    return Volumes.of(*(np.concatenate(each) for each in zip(*(pieces or [(none, none, none)]), strict=True)))


def measure_files(actions: pa.Table) -> Numbers:
    """Return about how many bytes each file has in memory."""
    found: Numbers = actions["size_bytes"].to_numpy() * UNPACKED
    return found


def total_size(blocks: Iterable[Block]) -> int:
    """Return the bytes of all blocks, about."""
    return sum(block.size for block in blocks)
