"""The rows that one version of a serving table shows: all of them, or those of windows of a range in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.sinks.served_changes import BATCH, MEMORY, NONE, VISIBLE, scan_sql
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.tables.sinks.served_versions import ServedVersion
from seamline.model.errors import NotFound
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.model.time.zone_clock import MICROSECOND


@dataclass(frozen=True)
class StartRange:
    """The windows that start in a range; both bounds None for all windows."""

    start: datetime | None = None
    """The first start, inclusive; None for no bound."""
    end: datetime | None = None
    """The instant before which windows start; None for no bound."""

    @classmethod
    def of(cls, again: RangeAgain) -> StartRange:
        """Return the windows of a range that is sent again."""
        return cls(*(parse_moment(each) if each else None for each in (again.start, again.end)))

    def condition_sql(self) -> str:
        """Write the condition on the starts of windows."""
        bounds = ((self.start, ">="), (self.end, "<"))
        parts = [
            f"window_start {sign} {quote_literal(format_utc_instant(bound))}::TIMESTAMPTZ"
            for bound, sign in bounds
            if bound is not None
        ]
        return " AND ".join(parts) or "true"


@dataclass(frozen=True)
class ShownRows:
    """What a target may hold of one version."""

    version: ServedVersion
    """The version."""
    when: str
    """Which rows are sent."""
    span: StartRange = StartRange()
    """The windows that are asked about."""

    def iterate_sendable(self, places: Sequence[str], skip: int = 0) -> Iterator[pa.Table]:
        """Give the rows that are sent, by what identifies them, without the first ``skip``."""
        order = ", ".join(f"{quote_identifier(name)} NULLS FIRST" for name in places)
        visible = f"{VISIBLE[self.when].format(side='shown')} AND {self.span.condition_sql()}"
        for found in self.query(f"SELECT {self.columns} FROM shown WHERE {visible} ORDER BY {order}"):
            rest = found.slice(skip)
            skip -= found.num_rows - rest.num_rows
            if rest.num_rows:
                yield rest

    def iterate_all(self) -> Iterator[tuple[pa.Table, pa.ChunkedArray]]:
        """Give all rows in no order, each table with whether its rows are sent now."""
        visible = VISIBLE[self.when].format(side="shown")
        query = f"SELECT {self.columns}, {visible} AS sent FROM shown WHERE {self.span.condition_sql()}"
        for found in self.query(query):
            yield found.select(self.version.schema.names), found["sent"]

    def find(self, row: pa.Table, places: Sequence[str]) -> pa.Table:
        """Return the row that has the identity of another; none where there is none."""
        same = " AND ".join(
            f"shown.{name} IS NOT DISTINCT FROM (SELECT {name} FROM asked)"
            for name in map(quote_identifier, places)
        )
        start = row["window_start"][0].as_py()
        about = StartRange(start, start + MICROSECOND).condition_sql()
        found = [*self.query(f"SELECT {self.columns} FROM shown WHERE {about} AND {same}", asked=row)]
        return pa.concat_tables(found) if found else self.version.schema.empty_table()

    @property
    def columns(self) -> str:
        """The columns in a query."""
        return ", ".join(f"shown.{quote_identifier(name)}" for name in self.version.schema.names)

    def query(self, query: str, **tables: pa.Table) -> Iterator[pa.Table]:
        """Ask a question of the rows, whose answer has their columns first; NotFound where a file is gone."""
        schema, files = self.version.schema, dict(self.version.files)
        with open_beside(1) as con:
            con.execute(f"SET memory_limit = '{MEMORY}'")
            for name, table in {NONE[1]: schema.empty_table(), **tables}.items():
                con.register(name, table)
            try:
                scan = scan_sql(self.version, files, NONE[1])
                with con.sql(f"WITH shown AS ({scan}) {query}").to_arrow_reader(BATCH) as reader:
                    for batch in reader:
                        yield cast_columns(pa.Table.from_batches([batch]), schema)
            except (duckdb.IOException, OSError) as error:
                gone = [each for each in files if not locate_table_file(self.version.root, each).exists()]
                if gone:
                    raise NotFound(
                        f"{len(gone)} files of version {self.version.number} are gone, {gone[0]} among them."
                    ) from error
                raise


def cast_columns(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table whose columns of a schema have the types that they have there."""
    columns = [
        column.cast(schema.field(name).type) if name in schema.names else column
        for name, column in zip(found.column_names, found.columns, strict=True)
    ]
    return pa.table(columns, names=found.column_names)
