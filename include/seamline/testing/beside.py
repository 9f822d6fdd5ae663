"""Look-ups beside the keys of answers, the dull way: a dictionary by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from seamline.lake.engine.lookup_joins import guarded_value_sql, key_name
from seamline.lake.storage.arrow_types import key_fields
from seamline.lake.tables.lookups.lookup_tables import load_lookup
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.errors import LookupBroken

Rows = list[dict[str, Any]]


@dataclass
class Beside:
    """The look-ups that only decorate."""

    con: duckdb.DuckDBPyConnection
    """A connection of this object alone."""
    tables: dict[str, Rows] = field(default_factory=dict)
    """Rows by look-up name, as they could last be read."""

    def decorate(self, view: CompiledView, rows: Rows) -> None:
        """Add the columns of a view's look-ups to its presented rows."""
        for join in view.decorations:
            try:
                self.tables[join.name] = load_lookup(join).to_pylist()
            except LookupBroken:
                self.tables.setdefault(join.name, [])
            names = [key_name(name) for name, _ in join.keys]
            by_key = {tuple(row[name] for name in names): row for row in self.tables[join.name]}
            for row, key in zip(rows, self.lookup_keys(join, view, rows), strict=True):
                match = by_key.get(key, {})
                row.update((column.name, match.get(column.name)) for _, column in join.columns)

    def lookup_keys(
        self, join: LookupJoin, view: CompiledView, rows: Sequence[dict[str, Any]]
    ) -> list[tuple[Any, ...]]:
        """Evaluate what a look-up's keys must equal, for each row."""
        schema = pa.schema(key_fields(view))
        keys = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)
        self.con.register("keys", keys)
        try:
            return self.con.execute(
                f"SELECT {', '.join(guarded_value_sql(made) for _, made in join.keys)} FROM keys"
            ).fetchall()
        finally:
            self.con.unregister("keys")
