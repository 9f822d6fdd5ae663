"""The commit points of an epoch: what a stream that died at one has left, which proves where it died."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from tests.faults.rig.checkpoints import batches

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.parquet_files import read_parquet_footer
from seamline.lake.store.locations import list_places
from seamline.lake.tables.slices import Slices
from seamline.local.stack import StreamStack


@dataclass(frozen=True)
class Left:
    """How far each table is, and the files of the master's folder that are of no epoch it holds.

    ``planned`` and ``done`` are Spark's batches; ``whole`` and ``broken`` count files.
    """

    slices: int
    quarantine: int
    master: int
    ledger: int
    planned: int
    done: int
    whole: int
    broken: int

    @classmethod
    def of(cls, stack: StreamStack) -> Left:
        """Look at a stack that is dead."""
        layout = stack.layout
        if not Master.exists(layout):
            return cls(-1, -1, -1, -1, -1, -1, 0, 0)
        master = Master.open(layout).epoch
        [view] = stack.pipeline.views
        tables = [Slices.ensure(layout, view).table, Table.open(layout.table("quarantine"))]
        slices, quarantine = (-1 if (at := table.txn(EPOCH)) is None else at for table in tables)
        ledger = Ledger.ensure(layout).read()
        planned, done = batches(stack.home / "streams" / stack.name)
        above = [
            file
            for file in list_places(layout.table("master"), "*.parquet")
            if int(file.name.split("-")[1]) > max(master, slices, quarantine)
        ]
        whole = sum(map(readable, above))
        last = ledger[-1].number if ledger else -1
        return cls(slices, quarantine, master, last, planned, done, whole, len(above) - whole)

    def is_of(self, point: str) -> bool:
        """Return whether this is what dying at a point leaves."""
        unheld = self.master == self.ledger and self.planned > self.done
        at_master = max(self.slices, self.quarantine) <= self.master
        return {
            "planned": unheld and at_master and not self.whole and not self.broken,
            "half": unheld and at_master and self.broken > 0,
            "files": unheld and at_master and self.whole > 0 and not self.broken,
            "slices": unheld and self.slices > self.master >= self.quarantine,
            "quarantine": unheld and self.slices == self.quarantine > self.master,
            "master": self.slices == self.master > self.ledger,
            "ledger": self.slices == self.master == self.ledger and self.planned > self.done,
        }[point]


def readable(file: object) -> bool:
    """Return whether a data file is finished."""
    try:
        read_parquet_footer(file)
    except (pa.ArrowInvalid, OSError):
        return False
    return True
