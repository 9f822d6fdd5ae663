"""The master and its commit: the point at which an epoch is committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from seamline.lake.log.log_lines import MARK
from seamline.lake.storage import log_store
from seamline.lake.storage.arrow_types import master_schema
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import take_cached_table
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.protocol.offsets import Lane, Vector, advance_vector
from seamline.model.protocol.seam import NOTHING

END = "seamline.end/"
FRONTIER = "seamline.frontier/"
EDGE = "seamline.edge"
ROW = "seamline.ledger"
PRUNES = ("_epoch", "_event_time", "_offset", "_partition")


class Master:
    """Every accepted record; its commits say which epochs are committed, to which offsets, for which views."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout, pipeline: CompiledPipeline) -> Master:
        """Open the master, made if it is not there; columns that it lacks are added.

        A handle that has read the log here already is taken over from those who only look.
        """
        place, schema = layout.table("master"), master_schema(pipeline)
        return cls((take_cached_table(place) or Table.ensure(place, schema)).widen(schema))

    @classmethod
    def open(cls, layout: Layout) -> Master:
        """Open the master; NotFound if there is none."""
        return cls(Table.open(layout.table("master")))

    @classmethod
    def exists(cls, layout: Layout) -> bool:
        """Return whether there is a master."""
        return Table.exists(layout.table("master"))

    @property
    def epoch(self) -> int:
        """E: the last committed epoch, -1 for none."""
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
        """Return the end offset of every lane the master has read from."""
        ends = {lane: self.table.txn(f"{END}{lane}") for lane in lanes}
        return {lane: end for lane, end in ends.items() if end is not None}

    def commit(
        self, epoch: Epoch, written: Iterable[DataFile], marks: Mapping[str, int | None] | None = None
    ) -> None:
        """Commit an epoch. Refuses a number at or below E, and a range that does not join the last.

        ``marks`` are the newest numbers of the tables that it relies on, by name.
        Rows of an import, and what an epoch of kind amend has read, were missing before: they move no lane's end.
        """
        if epoch.number <= self.epoch:
            raise ProtocolError(
                f"The master is at epoch {self.epoch}; epoch {epoch.number} is not above it.",
                hint="every attempt must take a new number (rule 2).",
            )
        moved = list_moving_ranges(epoch)
        ends = advance_vector(self.position(part.lane for part in moved), moved)
        self.require_ahead(epoch.begun)
        ends |= epoch.begun
        txns = {EPOCH: epoch.number, **{f"{END}{lane}": end for lane, end in ends.items()}}
        txns |= {FRONTIER + view: frontier for view, frontier in epoch.frontiers.items()}
        txns |= {MARK + name: NOTHING if mark is None else mark for name, mark in (marks or {}).items()}
        if epoch.edge:
            txns[EDGE] = epoch.number
        self.table.append(written, txns=txns, metadata={ROW: epoch.to_json()})

    def require_ahead(self, begun: Vector) -> None:
        """Raise ProtocolError if a lane were begun below its end: its records would be read twice."""
        for lane, end in self.position(begun).items():
            if begun[lane] < end:
                raise ProtocolError(f"Lane {lane} has been read to {end} and cannot begin at {begun[lane]}.")

    def rows(self) -> Iterator[Epoch]:
        """Return the rows that the commits carry, the newest first, as far back as their entries in the log are there.

        Starts that committed nothing may leave any number of commits without one: no search for an epoch counts them.
        """
        for version in range(self.table.version, -1, -1):
            if (commit := self.table.read_commit(version)) is None:
                return
            if row := ledger_row(commit.info):
                yield row

    def missing(self, after: int) -> list[Epoch]:
        """List the epochs above ``after`` from the commits' metadata, in order: the ledger's repair.

        Goes back until a commit proves that nothing lies between. ProtocolError if the entries that would are gone.
        """
        if after >= self.epoch:
            return []
        found: dict[int, Epoch] = {}
        for row in self.rows():
            if row.number > after:
                found[row.number] = row
            if is_next_epoch_down(row, after):
                break
        else:
            self._require_all(found, after)
        return [found[number] for number in sorted(found)]

    def _require_all(self, found: Mapping[int, Epoch], after: int) -> None:
        """Raise unless the log is there from its first entry, and its first row is of the first epoch."""
        lowest = found[min(found)] if found else None
        first = log_store.entry_path(self.table.root, 0).exists()
        if first and self.epoch in found and lowest and (lowest.before is None or lowest.before <= after):
            return
        known = f"epoch {lowest.number}" if lowest else "none"
        raise ProtocolError(
            f"The master is at epoch {self.epoch} and the ledger ends at {after}; of the epochs between them the "
            f"master's commits record only those back to {known}: entries of its log are missing.",
            hint="restore the ledger from a backup: its rows are the only ones that are left of these epochs.",
        )


def is_next_epoch_down(row: Epoch, after: int) -> bool:
    """Return whether no epoch can lie between ``after`` and a row that was met on the way back."""
    return row.number <= after + 1 or (row.before is not None and row.before <= after)


def ledger_row(commit: Mapping[str, object]) -> Epoch | None:
    """Read the ledger row that a master commit carries."""
    text = commit.get(ROW)
    if isinstance(text, dict):
        text = json.dumps(text)
    return Epoch.from_json(text) if isinstance(text, str) else None
