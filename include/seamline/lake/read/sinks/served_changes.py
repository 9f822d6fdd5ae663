"""The difference between two versions of a serving table, of the files alone that one of them has and the other not.

It has one order, by interval, keys and window, whoever computes it: a sink that was cut short goes on in it by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.tables.sinks.served_versions import ServedVersion
from seamline.model.definition.sinks.sink_base import CERTIFIED, CHANGE, COMPLETE
from seamline.model.errors import NotFound

BATCH = 5_000
"""Rows that are compared at a time."""
MEMORY = "512MiB"
"""What a comparison takes before it writes to disk: each sink of a process has one of its own."""
UNCOMPARED = ("epoch", "manifest_version", "interval")
"""Columns that say of when a row is: another value of them alone is no change."""
OLD, NEW = "old.", "new."
"""What stands before the columns of both sides in a comparison."""
THERE = "there"
NONE = ("nothing_old", "nothing_new")
"""Tables without rows that have the columns of both sides."""
VISIBLE = {
    CHANGE: "true",
    COMPLETE: "coalesce({side}.complete, false)",
    CERTIFIED: "coalesce({side}.certified, false)",
}
"""Whether a row of a side is to be sent, by the sink's ``when``."""


class RowChanges(NamedTuple):
    """Some changes, in their order; each row, by its keys and window, is in one of them."""

    upserts: pa.Table
    """Rows as they are now."""
    deletions: pa.Table
    """The places of rows that are no longer there: grouping set, keys, window."""
    olds: pa.Table | None
    """The rows that were there before, where they are wanted."""


@dataclass(frozen=True)
class Comparison:
    """Two versions of a serving table, and what is wanted of their difference."""

    before: ServedVersion | None
    """The version that the target shows; None for one that shows nothing."""
    after: ServedVersion
    """The version that it shall show."""
    places: Sequence[str]
    """The columns that identify a row, in both versions: grouping set, keys, window."""
    when: str
    """Which rows are sent."""
    olds: bool = False
    """Whether rows are wanted as they were."""

    def list_groups(self) -> list[tuple[dict[str, str], dict[str, str]]]:
        """List the files to compare, of both sides, in the order of their intervals; of other intervals all at once."""
        old = dict(self.before.files) if self.before else {}
        removed = {path: old[path] for path in old.keys() - self.after.files.keys()}
        added = {path: self.after.files[path] for path in self.after.files.keys() - old.keys()}
        if self.before and self.before.view != self.after.view:
            # A definition may cut intervals otherwise: a row may be in another one.
            return [(removed, added)] if removed or added else []
        intervals = sorted({*removed.values(), *added.values()})
        return [
            (
                {path: each for path, each in removed.items() if each == interval},
                {path: each for path, each in added.items() if each == interval},
            )
            for interval in intervals
        ]

    def write_query(self, removed: dict[str, str], added: dict[str, str]) -> str:
        """Write the query of the changes between some files."""
        sides = (self.before or self.after), self.after
        old, new = scan_sql(sides[0], removed, NONE[0]), scan_sql(sides[1], added, NONE[1])
        columns = [
            f"{side}.{quote_identifier(name)} AS {quote_identifier(prefix + name)}"
            for side, prefix, version in (("o", OLD, sides[0]), ("n", NEW, sides[1]))
            for name in (*version.schema.names, THERE)
        ]
        join = " AND ".join(
            f"o.{name} IS NOT DISTINCT FROM n.{name}" for name in map(quote_identifier, self.places)
        )
        order = ", ".join(
            f"coalesce(n.{name}, o.{name}) NULLS FIRST" for name in map(quote_identifier, self.places)
        )
        seen, now = (VISIBLE[self.when].format(side=side) for side in ("o", "n"))
        sent = f"n.{THERE} AND {now} AND (o.{THERE} IS NULL OR NOT {seen} OR {self.differs_sql()})"
        return (
            f"SELECT {', '.join(columns)} FROM ({old}) o FULL JOIN ({new}) n ON {join} "
            f"WHERE n.{THERE} IS NULL OR ({sent}) ORDER BY {order}"
        )

    def differs_sql(self) -> str:
        """Write whether a row that both sides have is another one."""
        sides = [(self.before or self.after).schema, self.after.schema]
        if sides[0] != sides[1]:
            return "true"
        compared = [name for name in sides[1].names if name not in (*self.places, *UNCOMPARED)]
        return " OR ".join(f"o.{name} IS DISTINCT FROM n.{name}" for name in map(quote_identifier, compared))

    def split(self, found: pa.Table) -> RowChanges:
        """Split changes into rows that are there, and places that no row has any more."""
        before, after = (self.before or self.after), self.after
        here, gone = (
            found.filter(pc.is_valid(found[NEW + THERE])),
            found.filter(pc.is_null(found[NEW + THERE])),
        )
        return RowChanges(
            take_side(here, NEW, after.schema),
            take_side(gone, OLD, before.schema).select(list(self.places)),
            take_side(found.filter(pc.is_valid(found[OLD + THERE])), OLD, before.schema)
            if self.olds
            else None,
        )


def scan_sql(version: ServedVersion, files: dict[str, str], none: str) -> str:
    """Write the scan of some files with the columns of their version; ``none`` is the name of a table without rows."""
    if not files:
        return f"SELECT *, true AS {THERE} FROM {none}"
    parts = []
    for interval in sorted(set(files.values())):
        paths = sorted(version.locate(path) for path, own in files.items() if own == interval)
        columns = ", ".join(
            f"{quote_literal(interval)} AS interval" if name == "interval" else quote_identifier(name)
            for name in version.schema.names
        )
        parts.append(f"SELECT {columns}, true AS {THERE} FROM {read_parquet_sql(paths)}")
    return " UNION ALL ".join(parts)


def explain_absence(comparison: Comparison, paths: set[str]) -> NotFound | None:
    """Say which file is gone, if one is."""
    root = comparison.after.root
    gone = sorted(path for path in paths if not locate_table_file(root, path).exists())
    return NotFound(f"{len(gone)} files that it compares are gone, {gone[0]} among them.") if gone else None


def take_side(found: pa.Table, prefix: str, schema: pa.Schema) -> pa.Table:
    """Take the columns of one side of a comparison."""
    columns = [found[prefix + name].cast(schema.field(name).type) for name in schema.names]
    return pa.table(columns, schema=schema)


def iterate_changes(comparison: Comparison, skip: int = 0) -> Iterator[RowChanges]:
    """Compare two versions, and give what has changed in its order, without the first ``skip`` changes.

    Only one interval is in memory, or on its way there: what is sorted is written to disk where it is much.
    """
    sides = (comparison.before or comparison.after), comparison.after
    for removed, added in comparison.list_groups():
        with open_beside(1) as con:
            con.execute(f"SET memory_limit = '{MEMORY}'")
            for name, version in zip(NONE, sides, strict=True):
                con.register(name, version.schema.empty_table())
            try:
                with con.sql(comparison.write_query(removed, added)).to_arrow_reader(BATCH) as reader:
                    for batch in reader:
                        found = pa.Table.from_batches([batch]).slice(skip)
                        skip -= batch.num_rows - found.num_rows
                        if found.num_rows:
                            yield comparison.split(found)
            except (duckdb.IOException, OSError) as error:
                raise explain_absence(comparison, {*removed, *added}) or error from error
