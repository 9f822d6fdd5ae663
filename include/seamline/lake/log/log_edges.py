"""The edges of the log, each with the watermark at it, as the ledger's files have them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

import pyarrow as pa

from seamline.lake.log.ledger_files import Group
from seamline.lake.log.ledger_summaries import read_cached_summary
from seamline.lake.storage import parquet_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND

NEVER = 2**62
"""Above every epoch."""
FOLLOWED = 1_000
"""Edges beyond the ledger's files that are kept: before more the ledger is looked at again."""


@dataclass(frozen=True)
class Marks:
    """Edges in ascending order, one column for each fact."""

    numbers: tuple[int, ...] = ()
    """Epochs."""
    marks: tuple[int, ...] = ()
    """Watermarks in microseconds since 1970; those of one clock never fall."""
    instants: tuple[datetime, ...] = ()
    """When each edge was committed."""


@dataclass(frozen=True)
class Edges:
    """The edges of the log; of those in the ledger's files, few files are opened for a question."""

    groups: tuple[Group, ...] = ()
    """The ledger's files, ascending."""
    later: Marks = Marks()
    """Edges above the ledger's files."""
    last: int = -1
    """The last epoch that was looked at, edge or not; -1 for none."""
    runs: tuple[tuple[int, int], ...] = ((0, NEVER),)
    """Runs of epochs of one clock, first and last, ascending: watermarks at edges outside of them are another's."""

    @classmethod
    def of(cls, groups: tuple[Group, ...]) -> Edges:
        """Return those of a ledger."""
        return cls(groups, last=groups[-1].last if groups else -1)

    def mark_before(self, epoch: int) -> int | None:
        """Return the watermark, in microseconds since 1970, at the last edge of the clock before an epoch."""
        for first, last in reversed(self.runs):
            found = self._before(min(epoch, last + 1)) if first < epoch else None
            if found and found[0].numbers[found[1]] >= first:
                return found[0].marks[found[1]]
        return None

    def within(self, runs: Iterable[tuple[int, int]]) -> Edges:
        """Leave out the watermarks of edges outside some runs of epochs, ascending, each from its first to its last."""
        return replace(self, runs=tuple(runs))

    def newest_up_to(self, until: int) -> tuple[int, datetime] | None:
        """Return the last edge up to an epoch, and when it was committed."""
        found = self._before(until + 1)
        return (found[0].numbers[found[1]], found[0].instants[found[1]]) if found else None

    def plus(self, rows: Iterable[Epoch]) -> Edges:
        """Add later epochs."""
        numbers, marks, instants = (list(each) for each in vars(self.later).values())
        last = self.last
        for row in sorted(rows, key=lambda each: each.number):
            if row.number > last and row.edge and row.watermark is not None:
                numbers.append(row.number)
                marks.append((row.watermark - EPOCH) // MICROSECOND)
                instants.append(row.committed_at)
            last = max(last, row.number)
        return replace(self, later=Marks(tuple(numbers), tuple(marks), tuple(instants)), last=last)

    def _before(self, epoch: int) -> tuple[Marks, int] | None:
        at = bisect_right(self.groups, epoch - 1, key=lambda group: group.first)
        for marks in chain([self.later], map(read_group_edges, reversed(self.groups[:at]))):
            if place := bisect_left(marks.numbers, epoch):
                return marks, place - 1
        return None


def read_group_edges(group: Group) -> Marks:
    """Read the edges of a group of files."""
    if len(group.files) == 1:
        return read_cached_summary(group.files[0].path, b"edges", lambda: read_edge_columns(group))
    return read_edge_columns(group)


def read_edge_columns(group: Group) -> Marks:
    """Read them by their columns; one that was written twice is given once."""
    columns = ["epoch", "edge", "watermark", "committed_at"]
    rows = pa.concat_tables(parquet_files.read_parquet_file(file.path, columns) for file in group.files)
    rows = rows.filter(rows["edge"]).sort_by("epoch")
    marks = rows["watermark"].cast(INSTANT).cast(pa.int64()).to_pylist()
    found = {
        number: (mark, at)
        for number, mark, at in zip(
            rows["epoch"].to_pylist(), marks, rows["committed_at"].to_pylist(), strict=True
        )
        if mark is not None
    }
    instants = tuple(at for _, at in found.values())
    return Marks(tuple(found), tuple(mark for mark, _ in found.values()), instants)
