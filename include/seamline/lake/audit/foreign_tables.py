"""Tables that others have made, read as they are kept: Delta, Parquet, CSV and JSON lines, on disk or in a bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.lake.store.copied_objects import copy_objects
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.store.table_files import KINDS, READERS, end_of, is_delta_table, list_table_files
from seamline.model.errors import BadRange

FOREIGN = "foreign_table"


@dataclass(frozen=True)
class ForeignTable:
    """A table of somebody's."""

    place: str
    """Where it is, as it was named."""
    about: str
    """What it is, for people: ``Delta version 7``, ``3 files``."""
    written_at: datetime
    """When it was last written, UTC."""
    columns: tuple[str, ...]
    """The names of its columns."""
    con: duckdb.DuckDBPyConnection
    """Where it can be read while it is open."""
    query: str
    """What reads it."""

    def read(self, columns: Mapping[str, str], types: Mapping[str, str], where: str = "true") -> pa.Table:
        """Read columns (ours by name: theirs); ``types`` are those of Spark that some are cast to.

        ``where`` is a condition on ours. Instants without a zone are UTC. BadRange where a column is not there, or a
        value is none of its type.
        """
        if missing := [theirs for theirs in columns.values() if theirs not in self.columns]:
            raise BadRange(
                f"{self.place!r} has no column {missing[0]!r}.",
                hint=f"it has {', '.join(self.columns)}: say which is meant by --key or --measure NAME=COLUMN.",
            )
        chosen = ", ".join(
            f"{cast_sql(quote_identifier(theirs), types.get(ours))} AS {quote_identifier(ours)}"
            for ours, theirs in columns.items()
        )
        try:
            rows = f"SELECT {chosen} FROM ({self.query})"
            return self.con.sql(f"SELECT * FROM ({rows}) WHERE {where}").to_arrow_table()
        except (duckdb.ConversionException, duckdb.BinderException) as error:
            raise BadRange(
                f"A column of {self.place!r} does not have the type that it is compared by: {error}.",
                hint="name the columns that have the view's keys and the starts of its windows: --key NAME=COLUMN.",
            ) from None
        except duckdb.IOException as error:
            raise changed_while_read(self.place, error) from None


@contextmanager
def open_foreign_table(text: str) -> Iterator[ForeignTable]:
    """Open a table while the block runs. NotFound where nothing is there; BadRange for what is no table."""
    place = parse_location(text)
    # Files of others change: the connections of this thread remember what was in them.
    with ExitStack() as stack:
        con = stack.enter_context(open_beside())
        if is_delta_table(place):
            about, written = register_delta_table(con, place)
            query = f"SELECT * FROM {FOREIGN}"
        else:
            files = list_table_files(place)
            about = f"{len(files)} file{'' if len(files) == 1 else 's'}"
            try:
                written = datetime.fromtimestamp(max(each.stat().st_mtime for each in files), UTC)
                copies = stack.enter_context(copy_objects(files, place))
            except FileNotFoundError as error:
                raise changed_while_read(text, error) from None
            paths = ", ".join(quote_literal(path) for path in copies)
            query = f"SELECT * FROM {READERS[end_of(files[0].name)]}([{paths}], union_by_name=true)"
        yield describe_table(con, text, about, written, query)


def register_delta_table(con: duckdb.DuckDBPyConnection, place: Location) -> tuple[str, datetime]:
    """Register a Delta table to be read; return what it is, and when it was last written. BadRange if it cannot be."""
    try:
        table = DeltaTable(str(place))
        con.register(FOREIGN, table.to_pyarrow_dataset())
        # A commit may be without an entry about itself.
        said = [each["timestamp"] for each in table.history(1) if "timestamp" in each]
        adds = pa.table(table.get_add_actions(flatten=True))
    except DeltaError as error:
        raise BadRange(
            f"The Delta table at {str(place)!r} cannot be read: {str(error).splitlines()[0]}.",
            hint="write what is compared as Parquet; of a table with deletion vectors purge them (REORG ... PURGE).",
        ) from None
    millis = said or adds["modification_time"].cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() or [0]
    return f"Delta version {table.version()}", datetime.fromtimestamp(max(millis) / 1000, UTC)


def changed_while_read(text: str, error: Exception) -> BadRange:
    """Say that files of a table have changed since they were listed."""
    return BadRange(
        f"{text!r} has changed while it was read: {str(error).splitlines()[0]}.",
        hint="compare again, once the job that writes it has ended or pauses.",
    )


def describe_table(
    con: duckdb.DuckDBPyConnection, text: str, about: str, written_at: datetime, query: str
) -> ForeignTable:
    """Describe a table that can be read; BadRange where it cannot."""
    try:
        columns = con.sql(f"SELECT * FROM ({query}) LIMIT 0").columns
    except duckdb.Error as error:
        raise BadRange(f"{text!r} cannot be read: {error}.", hint=f"name {KINDS}.") from None
    return ForeignTable(text, about, written_at, tuple(columns), con, query)


def cast_sql(column: str, type: str | None) -> str:
    """Write a column, cast to a type of Spark's where one is given."""
    if type is None:
        return column
    return f"CAST({column} AS {'TIMESTAMPTZ' if type == 'TIMESTAMP' else type})"
