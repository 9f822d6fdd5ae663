"""The manifest table: conditional commits of what is published."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import pyarrow as pa

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.commit_conflicts import ATTEMPTS, retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, name_warehouse
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.store.moved_warehouses import read_moved
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.manifest import Act, How, Manifest, Statement, as_of, fold_statements
from seamline.model.protocol.seam import NOTHING

APP = "seamline.manifest"
STAMP = "seamline.format"
MOVED = "seamline.moved"
"""App id: 1 once the pipeline has moved to another warehouse, 0 if it came from one, or was taken back."""
FORMAT = 1
"""The version of what this release writes; see ``format``."""
SCHEMA = pa.schema(
    [
        ("act", pa.string()),
        ("view", pa.string()),
        ("epoch", pa.int64()),
        ("interval", pa.string()),
        ("generation", pa.string()),
        ("rows", pa.int64()),
        ("certified", pa.bool_()),
        ("definition", pa.string()),
        ("run", pa.string()),
        ("reason", pa.string()),
        ("at", INSTANT),
        ("seq", pa.int64()),
        ("restated", pa.int64()),
        ("actor", pa.string()),
        ("how", pa.string()),
    ]
)
PARSED: Mapping[str, Callable[[Any], Any]] = {
    "act": Act,
    "restated": lambda value: value or 0,
    "actor": lambda value: value or "",
    "how": lambda value: How(value or How.CERTIFIED),
}
"""What is made of a column's values, where they are not taken as they are."""


class ManifestTable:
    """Reads the state at a version, and commits statements that were decided on that very version."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> ManifestTable:
        """Open the manifest; create it if missing."""
        table = Table.ensure(layout.table("manifest"), SCHEMA, txns={STAMP: FORMAT})
        return cls(table.widen(SCHEMA))

    def read(self) -> Manifest:
        """Read the state at the newest version; a later ``commit`` is conditional on it."""
        self.table.refresh()
        return self.fold()

    def fold(self) -> Manifest:
        """Return the state at the version that the handle sees."""
        return fold_statements(self.statements(), self.table.version)

    def statements(self) -> list[Statement]:
        """List every row at the version that the handle sees, in no order."""
        return parse_statements(self.table.read())

    def commit(self, statements: list[Statement]) -> int:
        """Write statements decided on the state last read; Conflict if anyone has committed since.

        MovedAway once the pipeline has moved: what is published in the old place, nobody would see.
        """
        self.require_here()
        seq = self.table.version + 1
        rows = [
            {**vars(each), "act": each.act.value, "how": each.how.value, "seq": seq} for each in statements
        ]
        name = f"{seq:012d}-{statements[0].run or statements[0].act.value}.parquet".replace("/", "_")
        file = data_files.write_data_file(
            pa.Table.from_pylist(rows, schema=SCHEMA), self.table.root, unique_file_name(name), stats=["seq"]
        )
        return self.table.append([file], txns={APP: seq})

    def require_here(self) -> None:
        """Raise MovedAway if the pipeline has moved to another warehouse."""
        folder = self.table.root.parent
        if self.table.txn(MOVED) and (moved := read_moved(folder.parent)):
            raise moved.refusal(folder.name, name_warehouse(folder.parent))

    def state_move(self, moved: bool) -> None:
        """State whether the pipeline has moved; whoever has decided before on something else decides again."""

        def once() -> None:
            self.table.refresh()
            if bool(self.table.txn(MOVED)) != moved:
                self.table.append([], txns={MOVED: int(moved), APP: self.table.version + 1})

        retry_overtaken(once, attempts=None)

    def decide(
        self, decision: Callable[[Manifest], list[Statement]], attempts: int | None = ATTEMPTS
    ) -> list[Statement]:
        """Decide on the newest state and commit, again each time that another process was first.

        Returns the statements, none of which is no commit. Raises what ``decision`` does, and Overtaken after so many
        ``attempts``.
        """

        def once() -> list[Statement]:
            statements = decision(self.read())
            if statements:
                self.commit(statements)
            return statements

        return retry_overtaken(once, attempts)


def parse_statements(rows: pa.Table) -> list[Statement]:
    """Parse rows; those of earlier releases have no restatements, no actor, and were all certified.

    Columns that others have added are theirs.
    """
    columns = [
        make_values(rows[each.name], PARSED.get(each.name, lambda value: value))
        if each.name in rows.column_names
        else [each.default] * rows.num_rows
        for each in fields(Statement)
    ]
    return [Statement(*values) for values in zip(*columns, strict=True)]


def make_values(column: pa.ChunkedArray, make: Callable[[Any], Any]) -> list[Any]:
    """Make something of each value, and of equal ones once: thousands of rows have the same run and instant."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    made = [make(value) for value in encoded.dictionary.to_pylist()]
    return [made[at] for at in encoded.indices.to_pylist()]


def unique_file_name(name: str) -> str:
    """Keep two deciders from writing one file: the loser must not overwrite the winner's rows."""
    stem, _, ending = name.rpartition(".")
    return f"{''.join(c if c.isalnum() or c in '-_' else '_' for c in stem)}-{uuid.uuid4().hex[:8]}.{ending}"


def manifest_of(layout: Layout, instant: datetime | None = None) -> Manifest:
    """Return the newest manifest, or as it was at an instant; an empty one where there is none."""
    if instant is not None:
        root = layout.table("manifest")
        return (
            read_cached_table(root, ("state", instant), lambda table: manifest_at(table, instant))
            or Manifest()
        )
    found = read_cached_table(layout.table("manifest"), "state", lambda table: ManifestTable(table).fold())
    return found or Manifest()


def manifest_at(table: Table, instant: datetime) -> Manifest:
    """Fold the statements that had been made by an instant."""
    known = as_of(ManifestTable(table).statements(), instant)
    return fold_statements(known, max((each.seq for each in known), default=NOTHING))


def find_version_id(manifest: Manifest, view: CompiledView, version: str) -> str:
    """Find the id of the version asked for, by its fingerprint; without one the served, else the view's own."""
    return f"{view.name}/{version}" if version else manifest.serving.get(view.name, view.id)
