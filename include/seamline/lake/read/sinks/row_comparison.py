"""Rows that a target holds beside rows that it shall hold, by what tells them apart: on disk where they are many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.read.sinks.served_changes import MEMORY, UNCOMPARED
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.storage.arrow_types import INSTANT

HELD = pa.schema(
    [
        # What tells a row from others there, as text.
        pa.field("place", pa.string()),
        # By what the target finds it again, where that is not its place.
        pa.field("handle", pa.string()),
        # The start of its window; NULL where nobody can tell.
        pa.field("start", INSTANT),
        # A JSON object of what is there; NULL for a row that is no longer there, as a tombstone says.
        pa.field("value", pa.string()),
    ]
)
"""The columns of rows as a target holds them. Of rows with one place and handle, the last one that is read is there."""
HELD_AT_ONCE = 5_000
"""Rows that are read at a time."""
OF_WHEN = rf', "({"|".join(UNCOMPARED)})": ("[^"]*"|-?[0-9]+|null)'
"""What of a row's JSON says of when it is; in a text of a row the quotes have backslashes before them."""
TABLES = """
    CREATE TABLE read (number BIGINT, place VARCHAR, handle VARCHAR, value VARCHAR);
    CREATE TABLE listed (number BIGINT, place VARCHAR, sent BOOLEAN, value VARCHAR);
    CREATE TABLE moved (place VARCHAR);
    CREATE VIEW held AS SELECT * FROM read
        SEMI JOIN (SELECT max(number) AS number FROM read GROUP BY place, handle) USING (number) WHERE value NOT NULL;
    CREATE VIEW wanted AS SELECT * FROM listed
        SEMI JOIN (SELECT max(number) AS number FROM listed GROUP BY place) USING (number) WHERE value NOT NULL;
"""
DIFFERENCES = """
    SELECT coalesce(h.place, w.place) AS place, h.handle, h.value AS held, w.value AS wanted
    FROM held h FULL JOIN wanted w ON h.place = w.place ANTI JOIN moved m ON m.place = coalesce(h.place, w.place)
    WHERE w.place IS NULL OR (w.sent AND h.value IS DISTINCT FROM w.value)
"""
COUNTS = """
    SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM wanted WHERE sent),
        (SELECT count(*) FROM wanted WHERE NOT sent), (SELECT count(DISTINCT place) FROM moved)
"""


class RowComparison:
    """Both sides, each in the order in which it was read: of one place the last row counts."""

    def __init__(self, con: duckdb.DuckDBPyConnection, span: StartRange) -> None:
        self.con, self.span, self.numbered = con, span, 0
        con.execute(TABLES)

    def add_held(self, rows: pa.Table) -> None:
        """Add rows that a target holds, as HELD has them; those of other windows are left out."""
        within = f"start IS NULL OR ({self.span.condition_sql().replace('window_start', 'start')})"
        value = strip_values(rows["value"])
        table = rows.set_column(rows.column_names.index("value"), "value", value)
        self.insert(table, "read", f"place, handle, value FROM given WHERE {within}")

    def add_wanted(self, places: pa.Array, values: pa.Array, sent: pa.Array | pa.ChunkedArray) -> None:
        """Add rows that it shall hold; it may hold anything for one that is not ``sent`` now."""
        table = pa.table({"place": places, "value": strip_values(values), "sent": sent})
        self.insert(table, "listed", "place, sent, value FROM given")

    def add_gone(self, places: pa.Array) -> None:
        """Add rows that it shall hold no more."""
        none = pa.nulls(len(places), pa.string())
        self.insert(pa.table({"place": places, "value": none}), "listed", "place, true, value FROM given")

    def add_moved(self, places: pa.Array) -> None:
        """Add rows of which nobody can say what the target held when it was read."""
        self.con.register("given", pa.table({"place": places}))
        self.con.execute("INSERT INTO moved SELECT place FROM given")
        self.con.unregister("given")

    def insert(self, rows: pa.Table, into: str, columns: str) -> None:
        """Insert rows with their numbers."""
        numbers = pa.array(range(self.numbered, self.numbered + rows.num_rows), pa.int64())
        self.con.register("given", rows.append_column("number", numbers))
        self.con.execute(f"INSERT INTO {into} SELECT number, {columns}")
        self.con.unregister("given")
        self.numbered += rows.num_rows

    def iterate_differences(self) -> Iterator[pa.Table]:
        """Give what differs: ``held`` is NULL where a row is missing, ``wanted`` where it should not be there."""
        with self.con.sql(DIFFERENCES).to_arrow_reader(HELD_AT_ONCE) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def iterate_strays(self) -> Iterator[pa.Table]:
        """Give what the target holds and shall not, as HELD has it."""
        for found in self.iterate_differences():
            strays = found.filter(pc.is_null(found["wanted"]))
            if strays.num_rows:
                none = pa.nulls(strays.num_rows, HELD.field("start").type)
                columns = [strays["place"], strays["handle"], none, strays["held"]]
                yield pa.table(columns, schema=HELD)

    def count(self) -> tuple[Any, ...]:
        """Count rows held, rows that shall be there, rows that are not sent now, and rows that have moved."""
        return self.con.execute(COUNTS).fetchone() or ()


@contextmanager
def open_comparison(span: StartRange) -> Iterator[RowComparison]:
    """Open a comparison, which takes so much memory and then writes to disk."""
    with open_beside(1) as con:
        con.execute(f"SET memory_limit = '{MEMORY}'")
        yield RowComparison(con, span)


def strip_values(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return rows' JSON without what says of when they are: a sink does not send another value of that alone."""
    return pc.replace_substring_regex(values, OF_WHEN, "")
