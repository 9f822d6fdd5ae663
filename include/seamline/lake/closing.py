"""When windows closed: the edges of the log, each with the watermark at it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.pins import Files
from seamline.lake.tables import Table
from seamline.model.clock import MICROSECOND
from seamline.model.intervals import EPOCH


@dataclass(frozen=True)
class Edges:
    """Edges in their order; ``marks`` are their watermarks in microseconds since 1970, which never fall."""

    numbers: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()
    last: int = -1
    """The last epoch that was looked at, edge or not."""

    def closing(self, end: int, until: int) -> int | None:
        """Give the first edge up to ``until`` at which the watermark had reached ``end``."""
        at = bisect_left(self.marks, end)
        return self.numbers[at] if at < len(self.numbers) and self.numbers[at] <= until else None

    def plus(self, found: list[tuple[int, bool, datetime | None]]) -> Edges:
        """Add later epochs: number, whether an edge, watermark."""
        numbers, marks, last = list(self.numbers), list(self.marks), self.last
        for number, edge, mark in sorted(found, key=lambda each: each[0]):
            if number > last and edge and mark is not None:
                numbers.append(number)
                marks.append((mark - EPOCH) // MICROSECOND)
            last = max(last, number)
        return Edges(tuple(numbers), tuple(marks), last)


_known: dict[str, Edges] = {}


def edges_of(ledger: Table) -> Edges:
    """Read the edges of a ledger; of what was read before only the files with later epochs are opened."""
    identity = str(ledger.handle.metadata().id)
    known = _known.get(identity, Edges())
    files = Files.of(ledger)
    if files.actions.num_rows:
        files = files.keep(pc.greater(files.high("epoch").cast(pa.int64()), known.last))
    found: list[tuple[int, bool, datetime | None]] = []
    for path in files.paths if files.actions.num_rows else []:
        rows = pq.read_table(Path(path), columns=["epoch", "edge", "watermark"], partitioning=None)
        found += zip(*(column.to_pylist() for column in rows.columns), strict=True)
    known = _known[identity] = known.plus(found)
    return known
