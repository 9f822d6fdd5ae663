"""The master and its commit: the point at which an epoch is held."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from seamline.lake.files import DataFile
from seamline.lake.layout import Layout
from seamline.lake.tables import EPOCH, Table
from seamline.lake.types import master_schema
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch, Kind
from seamline.model.errors import ProtocolError
from seamline.model.offsets import Lane, advance

END = "seamline.end/"
FRONTIER = "seamline.frontier/"
EDGE = "seamline.edge"
ROW = "seamline.ledger"
PRUNES = ("_epoch", "_event_time", "_offset", "_partition")


class Master:
    """Every accepted record; its commits say which epochs are held, to which offsets, for which views."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout, pipeline: CompiledPipeline) -> Master:
        """Open the master, made if it is not there; columns that it lacks are added."""
        return cls(
            Table.ensure(layout.table("master"), master_schema(pipeline)).widen(master_schema(pipeline))
        )

    @classmethod
    def open(cls, layout: Layout) -> Master:
        """Open the master; NotFound where there is none."""
        return cls(Table.open(layout.table("master")))

    @classmethod
    def exists(cls, layout: Layout) -> bool:
        """Tell whether there is a master."""
        return Table.exists(layout.table("master"))

    @property
    def epoch(self) -> int:
        """E: the last epoch the master holds, -1 for none."""
        found = self.table.txn(EPOCH)
        return -1 if found is None else found

    @property
    def edge(self) -> int:
        """The newest edge, -1 for none: where a cut may fall."""
        found = self.table.txn(EDGE)
        return -1 if found is None else found

    def frontier(self, view: str) -> int:
        """W(v) of a view version: its slices are complete up to there; -1 for none."""
        found = self.table.txn(FRONTIER + view)
        return -1 if found is None else found

    def position(self, lanes: Iterable[Lane]) -> dict[Lane, int]:
        """Give the end offset of every lane the master has read from."""
        ends = {lane: self.table.txn(f"{END}{lane}") for lane in lanes}
        return {lane: end for lane, end in ends.items() if end is not None}

    def commit(self, epoch: Epoch, written: Iterable[DataFile]) -> None:
        """Hold an epoch. Refuses a number at or below E, and a range that does not join the last.

        What an epoch of kind amend has read was passed over before: it moves no lane's end.
        """
        if epoch.number <= self.epoch:
            raise ProtocolError(
                f"The master holds epoch {self.epoch}; {epoch.number} is not above it.",
                hint="every attempt takes a new number (rule 2).",
            )
        moved = epoch.ranges if epoch.kind is not Kind.AMEND else ()
        ends = advance(self.position(part.lane for part in moved), moved)
        txns = {EPOCH: epoch.number, **{f"{END}{lane}": end for lane, end in ends.items()}}
        txns |= {FRONTIER + view: frontier for view, frontier in epoch.frontiers.items()}
        if epoch.edge:
            txns[EDGE] = epoch.number
        self.table.append(written, txns=txns, metadata={ROW: epoch.to_json()})

    def missing(self, after: int) -> list[Epoch]:
        """List the epochs above ``after`` from the commits' metadata, in order: the ledger's repair."""
        found: dict[int, Epoch] = {}
        for commit in self.table.history(self.epoch - after + 20 if after < self.epoch else 1):
            epoch = ledger_row(commit)
            if epoch and epoch.number > after:
                found[epoch.number] = epoch
        return [found[number] for number in sorted(found)]


def ledger_row(commit: Mapping[str, object]) -> Epoch | None:
    """Read the ledger row that a master commit carries."""
    text = commit.get(ROW)
    if isinstance(text, dict):
        text = json.dumps(text)
    return Epoch.from_json(text) if isinstance(text, str) else None
