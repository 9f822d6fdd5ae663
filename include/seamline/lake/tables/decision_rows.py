"""Decisions as rows: each has a number and the whole state after it, and the newest counts.

What is only prolonged (a lease, a claim) raises a ``txn`` in a commit without a file: that costs no row, and outlives
checkpoints, OPTIMIZE and the clean-up of the log, as the rows do.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.record_files import fill_missing_columns
from seamline.lake.storage import data_files, parquet_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.parquet_files import read_parquet_footer, read_plain_columns
from seamline.lake.storage.rewrites import Upkeep, discard_refused_files, replace_files
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import Location
from seamline.model.errors import Conflict, Overtaken, ProtocolError
from seamline.model.recent import Recent
from seamline.plan.maintain.slice_upkeep import Piece

DECIDED = "seamline.decided"
"""App id: the number of the newest row."""
WHOLE = pa.schema([("seq", pa.int64()), ("whole", pa.string())])
FEW = 8
"""So many files are left as they are."""
LARGE = 1 << 20
"""Bytes of a file of old rows that is not written again."""


class Decisions:
    """A table of decisions; ``app`` makes each commit of it conditional on the one before.

    An earlier release kept the state in the metadata of each commit, under ``app`` too: it is read from there until
    the first decision of this one writes a row.
    """

    def __init__(self, table: Table, app: str, schema: pa.Schema) -> None:
        self.table, self.app, self.schema = table, app, schema
        self._wide = False

    @property
    def begun(self) -> bool:
        """True once a row counts, and no longer what an earlier release left."""
        return self.table.txn(DECIDED) is not None

    def read(self) -> str | None:
        """Read the newest state, None before the first decision; ProtocolError if it was deleted."""
        self.table.refresh()
        return self.see()

    def see(self) -> str | None:
        """Return the newest state at the version that the handle sees, as ``read`` does."""
        if (seq := self.table.txn(DECIDED)) is not None:
            return whole_of(self.table, seq)
        return None if self.table.txn(self.app) is None else self._told()

    def write(
        self,
        row: Mapping[str, object],
        whole: str,
        *,
        txns: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """Decide on what was read last: Conflict if anybody has committed since."""
        if not self._wide:
            version, self._wide = self.table.version, True
            if self.table.widen(self.schema).version != version:
                raise Overtaken(
                    f"{self.table.root.name} was given the columns of this release.", hint="decide again."
                )
        seq = (self.table.txn(DECIDED) or 0) + 1
        rows = pa.Table.from_pylist([{**row, "seq": seq, "whole": whole}], schema=self.schema)
        file = data_files.write_data_file(rows, self.table.root, f"{uuid.uuid4().hex}.parquet")
        try:
            self.table.append([file], txns=self._marks({DECIDED: seq, **(txns or {})}), metadata=metadata)
        except Conflict:
            (self.table.root / file.path).unlink(missing_ok=True)
            raise

    def beat(self, txns: Mapping[str, int], metadata: Mapping[str, str] | None = None) -> None:
        """Prolong something without a decision, which a power cut may take back: Conflict as for ``write``."""
        self.table.append([], txns=self._marks(txns), metadata=metadata, sync=False)

    def _marks(self, txns: Mapping[str, int]) -> dict[str, int]:
        return {self.app: self.table.version + 1, **txns}

    def _told(self) -> str:
        """Return the state as an earlier release left it: others' commits may have come after its last."""
        for limit in (1, self.table.version + 1):
            for info in self.table.history(limit):
                if (found := info.get(self.app)) is not None:
                    return str(found)
        raise lost_decisions_error(
            self.table, "no commit still contains the state that an earlier release left there"
        )


_newest: Recent[tuple[Location, str], tuple[int, list[str], str]] = Recent(1_024)


def whole_of(table: Table, seq: int) -> str:
    """Return the state after a decision; the newest of each table is read once, rows do not change.

    Of a table from a backup the same number is another decision, in another file.
    """
    paths = list_decision_files(table, seq)
    known = _newest.get((table.root, table.id))
    if known is None or known[:2] != (seq, paths):
        known = (seq, paths, found_in(table, paths, seq))
        _newest[table.root, table.id] = known
    return known[2]


def list_decision_files(table: Table, seq: int) -> list[str]:
    """List the files that may have the row of the newest decision."""
    found = Files.of(table)
    if not found.actions.num_rows:
        return []
    return sorted(found.keep(pc.equal(found.high("seq").cast(pa.int64()), seq)).paths)


def found_in(table: Table, paths: Sequence[str], seq: int) -> str:
    """Find the row of a decision in some files; ProtocolError if there is none."""
    for path in paths:
        if "whole" in read_parquet_footer(path).schema.names:
            rows = read_plain_columns(path, ["seq", "whole"])
            for number, whole in zip(*rows.to_pydict().values(), strict=True):
                if number == seq and whole is not None:
                    return str(whole)
    raise lost_decisions_error(table, f"it has no row of the newest decision, {seq}")


def lost_decisions_error(table: Table, why: str) -> ProtocolError:
    """Make the error that says that decisions were taken away, and by whom that is undone."""
    return ProtocolError(
        f"{table.root} has lost decisions: {why}.",
        hint="the table was restored or rows were deleted: undo that (RESTORE to the version before), or restore the "
        "folder from a backup; nothing continues until then.",
    )


def compact_decision_rows(decisions: Decisions, *, passing: Collection[str] = ()) -> Upkeep:
    """Put old rows into one file, without the state after them; rows of ``passing`` states are deleted.

    The file of the newest row is left alone, and all later ones are newer: what counts is never written again.
    """
    table = decisions.table.refresh()
    seq = table.txn(DECIDED)
    found = Files.of(table)
    if seq is None or found.actions.num_rows <= FEW:
        return Upkeep()
    highest = found.high("seq").to_pylist()
    sizes = found.actions["size_bytes"].to_pylist()
    names = found.actions["path"].to_pylist()
    old = [
        (name, path, size)
        for name, path, size, last in zip(names, found.paths, sizes, highest, strict=True)
        if size < LARGE and (last is None or last < seq) and seq not in read_decision_numbers(path)
    ]
    if len(old) < FEW:
        return Upkeep()
    pieces = [Piece(name, size, 0, 0) for name, _, size in old]
    read = [
        fill_missing_columns(parquet_files.read_parquet_file(path), decisions.schema) for _, path, _ in old
    ]
    rows = pa.concat_tables([each.cast(decisions.schema) for each in read])
    rows = rows.filter(pc.invert(pc.is_in(rows["state"], pa.array([*passing], pa.string()))))
    rows = rows.set_column(
        rows.schema.get_field_index("whole"), "whole", pa.nulls(rows.num_rows, pa.string())
    )
    written = (
        [data_files.write_data_file(rows, table.root, f"{uuid.uuid4().hex}.parquet")] if rows.num_rows else []
    )
    try:
        replace_files(table, pieces, written)
    except Conflict as conflict:
        return discard_refused_files(table, written, conflict)
    return Upkeep(packed={table.root.name: len(old)})


def read_decision_numbers(path: str) -> list[int | None]:
    """Read the numbers of a file's rows; none if an earlier release wrote it."""
    if "seq" not in read_parquet_footer(path).schema.names:
        return []
    found: list[int | None] = read_plain_columns(path, ["seq"])["seq"].to_pylist()
    return found
