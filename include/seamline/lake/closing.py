"""What the ledger tells for ever: the edges of the log, each with the watermark at it, and its holes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.pins import Files
from seamline.lake.tables import Table
from seamline.model.clock import MICROSECOND
from seamline.model.epoch import Epoch, Kind
from seamline.model.intervals import EPOCH

KINDS = frozenset({Kind.HOLE.value, Kind.AMEND.value})


@dataclass(frozen=True)
class Edges:
    """Edges in their order; ``marks`` are their watermarks in microseconds since 1970, which never fall."""

    numbers: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()
    last: int = -1
    """The last epoch that was looked at, edge or not."""

    def mark_before(self, epoch: int) -> int | None:
        """Give the watermark, in microseconds since 1970, at the last edge before an epoch."""
        at = bisect_left(self.numbers, epoch)
        return self.marks[at - 1] if at else None

    def plus(self, found: list[tuple[int, bool, datetime | None]]) -> Edges:
        """Add later epochs: number, whether an edge, watermark."""
        numbers, marks, last = list(self.numbers), list(self.marks), self.last
        for number, edge, mark in sorted(found, key=lambda each: each[0]):
            if number > last and edge and mark is not None:
                numbers.append(number)
                marks.append((mark - EPOCH) // MICROSECOND)
            last = max(last, number)
        return Edges(tuple(numbers), tuple(marks), last)


@dataclass(frozen=True)
class Told:
    """What the ledger has told so far: the edges, and the epochs that are holes or have filled some."""

    edges: Edges = Edges()
    register: tuple[Epoch, ...] = ()


_known: dict[str, Told] = {}


def told_by(ledger: Table) -> Told:
    """Read it; of what was read before only the files with later epochs are opened."""
    identity = ledger.id
    known = _known.get(identity, Told())
    files = Files.of(ledger)
    if files.actions.num_rows:
        files = files.keep(pc.greater(files.high("epoch").cast(pa.int64()), known.edges.last))
    found: list[tuple[int, bool, datetime | None]] = []
    register: list[Epoch] = []
    for path in files.paths if files.actions.num_rows else []:
        rows = pq.read_table(Path(path), columns=["epoch", "edge", "watermark", "kind"], partitioning=None)
        found += zip(*(rows[name].to_pylist() for name in ("epoch", "edge", "watermark")), strict=True)
        if not KINDS.isdisjoint(rows["kind"].to_pylist()):
            whole = pq.read_table(Path(path), columns=["row"], partitioning=None)["row"].to_pylist()
            register += registered(map(Epoch.from_json, whole))
    new = {epoch.number: epoch for epoch in register if epoch.number > known.edges.last}
    known = _known[identity] = Told(
        known.edges.plus(found), (*known.register, *(new[number] for number in sorted(new)))
    )
    return known


def registered(rows: Iterable[Epoch]) -> list[Epoch]:
    """Keep the rows of holes, and of what filled some."""
    return [row for row in rows if row.kind.value in KINDS]
