"""Look-ups that only decorate: joined to the rows that people read, by the newest version of the table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.lookup_joins import lookup_join_sql, lookup_keys_sql, relation_of
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.answers import Answer
from seamline.lake.storage.arrow_types import decoration_fields
from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.lake.storage.parquet_files import read_replaced_file
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.lookup_tables import (
    hash_lookup_rows,
    load_lookup,
    read_lookup_mark,
    table_schema,
    write_lookup_version,
)
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.errors import LookupBroken
from seamline.model.recent import Recent

log = logging.getLogger("seamline.lookups")
NEWEST = "newest"
"""The name, among the versions of a look-up, of the one that serving tables show."""
ROW = "_row"


@dataclass(frozen=True)
class Shown:
    """The version of a look-up that is shown."""

    version: str
    """A hash of the rows; empty if no version was ever read."""
    table: pa.Table
    """The look-up's rows; none if the version is empty."""


_known: Recent[tuple[Location, Layout, LookupJoin], tuple[object, Shown]] = Recent(64)


def load_current_lookup(join: LookupJoin, layout: Layout) -> Shown:
    """Load a look-up as it is now, read once for each change of it.

    Where it cannot be read, that is logged once, and it stays what it was: to this process, else to the serving table.
    """
    place, now = (definitions_folder(), layout, join), read_lookup_mark(join)
    known = _known.get(place)
    if known is None or known[0] != now:
        try:
            table = load_lookup(join)
            found = Shown(hash_lookup_rows(table), table)
        except LookupBroken as problem:
            found = known[1] if known else read_served_lookup(join, layout)
            said = f"Version {found.version} is shown." if found.version else "None of its columns are shown."
            log.warning("%s %s", problem.message, said)
        known = now, found
        _known[place] = known
    return known[1]


def read_served_lookup(join: LookupJoin, layout: Layout) -> Shown:
    """Read a look-up as the serving table shows it; no rows where it shows none, or that of another definition."""
    path, schema = layout.lookup(join.name, NEWEST), table_schema(join)
    if path.exists():
        table = read_replaced_file(path)
        if table.schema == schema:
            return Shown(hash_lookup_rows(table), table)
    return Shown("", schema.empty_table())


def list_lookup_versions(view: CompiledView, layout: Layout) -> Mapping[str, str]:
    """List the version of each look-up that a view shows."""
    return {join.name: load_current_lookup(join, layout).version for join in view.decorations}


def save_shown_lookups(view: CompiledView, layout: Layout) -> None:
    """Save what is shown, for a time when the tables cannot be read."""
    for join in view.decorations:
        found = load_current_lookup(join, layout)
        if found.version and found.version != read_served_lookup(join, layout).version:
            write_lookup_version(found.table, layout.lookup(join.name, NEWEST))


def load_shown_lookups(view: CompiledView, layout: Layout) -> Mapping[LookupJoin, Shown]:
    """Load the look-ups that a view shows, as they are now."""
    return {join: load_current_lookup(join, layout) for join in view.decorations}


def add_lookup_columns(
    found: Answer, view: CompiledView, layout: Layout, used: Mapping[LookupJoin, Shown] | None = None
) -> Answer:
    """Add the columns of a view's look-ups after its keys, of now or as ``used``; the rows and their order stay."""
    if not view.decorations:
        return found
    used = load_shown_lookups(view, layout) if used is None else used
    keys = found.table.select([key.name for key in view.keys])
    columns = join_lookup_rows(keys, {join: each.table for join, each in used.items()})
    table, place = found.table, found.table.column_names.index("window_start")
    for field in reversed(decoration_fields(view)):
        table = table.add_column(place, field, columns[field.name].cast(field.type))
    return replace(found, table=table, lookups={join.name: each.version for join, each in used.items()})


def join_lookup_rows(keys: pa.Table, tables: Mapping[LookupJoin, pa.Table]) -> pa.Table:
    """Join look-ups to rows of keys, row for row."""
    rows = keys.append_column(ROW, pa.arange(0, keys.num_rows))
    asks = ", ".join(map(lookup_keys_sql, tables))
    columns = ", ".join(quote_identifier(field.name) for join in tables for _, field in join.columns)
    found = " ".join(f"LEFT {lookup_join_sql(each)}" for each in tables)
    query = f"SELECT {columns} FROM (SELECT {ROW}, {asks} FROM rows) {found} ORDER BY {ROW}"
    return query_tables(query, rows=rows, **{relation_of(join): table for join, table in tables.items()})
