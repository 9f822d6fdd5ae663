"""A sink's table read back, in one snapshot with the position."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from psycopg.sql import SQL, Composable, Identifier, Literal
from pyarrow import csv

from seamline.lake.read.sinks.row_comparison import HELD
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.storage.arrow_types import INSTANT, arrow_of
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.postgres.copied_rows import escape_text
from seamline.sinks.postgres.held_texts import (
    list_told,
    normalize_held,
    read_as,
    spell_places,
    spell_values,
)
from seamline.sinks.postgres.positions import Positions
from seamline.sinks.postgres.sessions import Transaction
from seamline.sinks.postgres.sink_table import SinkTable, list_names

READ_AT_ONCE = 4 << 20
"""Bytes of text that are made rows at a time."""
HANDLE = "seamline_handle"
COPY = "COPY (SELECT ctid AS {handle}, {columns} FROM {table} WHERE {condition}) TO STDOUT (FORMAT csv)"
"""By its ``ctid`` a row is found again, as long as nobody has changed it."""
AS_READ = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL DateStyle = 'ISO, YMD';
    SET LOCAL extra_float_digits = 1;
    SET LOCAL bytea_output = 'hex'
"""
"""What makes a transaction see one moment, and a server write values as they are read here."""


class PostgresReading:
    """A table that is read in one transaction."""

    def __init__(self, cursor: Transaction, table: SinkTable, positions: Positions) -> None:
        self._cursor, self._table, self._positions = cursor, table, positions
        cursor.execute(AS_READ)

    def find_position(self) -> SinkPosition | None:
        """Read the position; it does not change in one transaction."""
        found = self._positions.look(self._cursor)
        return None if found is None else SinkPosition.from_json(found)

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read the rows of windows that start in a range."""
        yield from self.query(SQL(span.condition_sql()))

    def read_row(self, row: pa.Table) -> pa.Table:
        """Read one row."""
        [named] = row.select(list(self._table.shape.identity)).to_pylist()
        told = {name: escape_text(each) if isinstance(each, str) else each for name, each in named.items()}
        same = SQL(" AND ").join(
            SQL("{} IS NULL").format(Identifier(name))
            if value is None
            else SQL("{} = {}").format(Identifier(name), Literal(value))
            for name, value in told.items()
        )
        found = [*self.query(same)]
        return pa.concat_tables(found) if found else HELD.empty_table()

    def query(self, condition: Composable) -> Iterator[pa.Table]:
        """Copy the rows of a condition out of the table, a few megabytes of text at a time."""
        names = [field.name for field in list_told(self._table.shape)]
        parts = {"handle": Identifier(HANDLE), "columns": list_names(names), "table": self._table.identifier}
        with self._cursor.copy(SQL(COPY).format(condition=condition, **parts)) as copy:
            text = bytearray()
            # The server sends whole rows.
            for piece in copy:
                text += piece
                if len(text) >= READ_AT_ONCE:
                    yield self.make_rows(bytes(text))
                    text.clear()
            if text:
                yield self.make_rows(bytes(text))

    def make_rows(self, text: bytes) -> pa.Table:
        """Make rows of what was copied out."""
        shape, told = self._table.shape, list_told(self._table.shape)
        types = {HANDLE: pa.string(), **{each.name: read_as(arrow_of(each.type)) for each in told}}
        options = csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        )
        reads = csv.ReadOptions(column_names=list(types), use_threads=False, block_size=2 * READ_AT_ONCE)
        try:
            found = csv.read_csv(
                pa.BufferReader(text), reads, csv.ParseOptions(newlines_in_values=True), options
            )
        except pa.ArrowInvalid as error:
            raise SetupError(
                f"A row of {self._table.called} has a value that no view has: {error}.",
                hint="somebody has written it; `seamline sinks resend PIPELINE SINK` writes everything anew.",
            ) from None
        rows = normalize_held(told, found)
        starts = found["window_start"].cast(INSTANT)
        columns = [spell_places(shape, rows), found[HANDLE], starts, spell_values(shape, rows)]
        return pa.table(columns, schema=HELD)
