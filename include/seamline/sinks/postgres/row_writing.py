"""Changes of rows in a transaction of PostgreSQL: copied, compared with what is there, deleted."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from psycopg.sql import SQL, Composable, Identifier

from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.errors import SetupError
from seamline.model.types.schema import Field
from seamline.sinks.postgres.copied_rows import copy_texts
from seamline.sinks.postgres.sessions import Transaction
from seamline.sinks.postgres.sink_table import SinkTable, declare_column, list_names

LONGEST_KEY = 2_000
"""Bytes of a row's texts by which it is told from others: an index of PostgreSQL holds 2,704, compressed or not."""
SHOWN = 80
"""Letters of a key that a message shows."""
COPY = "COPY {} ({}) FROM STDIN (FORMAT csv)"
STAGE = "CREATE TEMP TABLE IF NOT EXISTS {} ({}) ON COMMIT DELETE ROWS"
UPSERT = """
    INSERT INTO {table} AS held ({columns}) SELECT {columns} FROM {stage}
    ON CONFLICT ({identity}) DO UPDATE SET {changes}
    WHERE (held.manifest_version, held.epoch) <= (excluded.manifest_version, excluded.epoch)
"""
DELETE = "DELETE FROM {table} AS held USING {stage} AS gone WHERE {same}"


def insert_rows(cursor: Transaction, table: SinkTable, rows: pa.Table) -> None:
    """Write rows where none of them is there yet."""
    copy_rows(cursor, table.identifier, choose_columns(table, rows))


def upsert_rows(cursor: Transaction, table: SinkTable, rows: pa.Table) -> None:
    """Write rows in place of those that are there; SetupError where one that is there is newer."""
    stage = make_stage(cursor, "new", table, table.shape.columns)
    copy_rows(cursor, stage, choose_columns(table, rows))
    others = [name for name in table.shape.names if name not in table.shape.identity]
    changes = SQL(", ").join(SQL("{0} = excluded.{0}").format(Identifier(name)) for name in others)
    parts = {"table": table.identifier, "columns": table.columns, "stage": stage}
    cursor.execute(SQL(UPSERT).format(identity=table.identity, changes=changes, **parts))
    if cursor.rowcount != rows.num_rows:
        raise SetupError(
            f"{rows.num_rows - cursor.rowcount} rows of {table.called} are newer than those that the view shows.",
            hint="the warehouse was restored, or another one writes them too: give each a table of its own, and then "
            "`seamline sinks resend PIPELINE SINK`.",
        )
    cursor.execute(SQL("TRUNCATE {}").format(stage))


def delete_rows(cursor: Transaction, table: SinkTable, gone: pa.Table) -> None:
    """Delete rows by what tells them apart; what is not there is not missed."""
    gone = table.shape.name_identity(gone)
    stage = make_stage(cursor, "gone", table, table.shape.keys)
    copy_rows(cursor, stage, gone)
    # A comparison that takes NULLs for equal uses no index: rows with NULLs in the same places go together.
    for nulls in list_null_places(gone):
        same = SQL(" AND ").join(
            SQL("gone.{0} IS NULL AND held.{0} IS NULL" if null else "held.{0} = gone.{0}").format(
                Identifier(name)
            )
            for name, null in zip(table.shape.identity, nulls, strict=True)
        )
        cursor.execute(SQL(DELETE).format(table=table.identifier, stage=stage, same=same))
    cursor.execute(SQL("TRUNCATE {}").format(stage))


def delete_handles(cursor: Transaction, table: SinkTable, handles: list[str]) -> None:
    """Delete rows by their ``ctid``: one that somebody has changed since is another."""
    delete = SQL("DELETE FROM {} WHERE ctid = ANY(%s::tid[])").format(table.identifier)
    cursor.execute(delete, [handles])


def delete_all(cursor: Transaction, table: SinkTable) -> None:
    """Delete every row."""
    cursor.execute(SQL("DELETE FROM {}").format(table.identifier))


def list_null_places(rows: pa.Table) -> list[tuple[bool, ...]]:
    """List in which columns rows have NULL, each way once."""
    nulls = pa.table({name: pc.is_null(rows[name]) for name in rows.column_names})
    found = nulls.group_by(nulls.column_names).aggregate([]).to_pylist()
    return [tuple(each[name] for name in nulls.column_names) for each in found]


def choose_columns(table: SinkTable, rows: pa.Table) -> pa.Table:
    """Return the columns that the table has; SetupError for a row whose key no index holds."""
    chosen = rows.select(table.shape.names)
    start = chosen["interval"].cast(pa.string()).cast(INSTANT)
    chosen = chosen.set_column(chosen.column_names.index("interval"), "interval", start)
    require_short_keys(table, chosen)
    return chosen


def require_short_keys(table: SinkTable, rows: pa.Table) -> None:
    """Raise SetupError for a row whose key no index holds."""
    texts = [name for name in table.shape.identity if pa.types.is_string(rows[name].type)]
    total = pa.array([0] * rows.num_rows, pa.int32())
    for name in texts:
        total = pc.add(total, pc.fill_null(pc.binary_length(rows[name]), 0))
    longest = pc.max(total).as_py()
    if longest is None or longest <= LONGEST_KEY:
        return
    [row] = rows.select(table.shape.identity).slice(pc.index(total, longest).as_py(), 1).to_pylist()
    shown = ", ".join(f"{name}={str(value)[:SHOWN]!r}" for name, value in row.items())
    raise SetupError(
        f"A key of {longest} bytes does not fit into an index of {table.called}: the row of {shown}.",
        hint=f'at most {LONGEST_KEY} bytes do: shorten it in select=, as in {{"{texts[0]}": "left({texts[0]}, 500)"}}.',
    )


def copy_rows(cursor: Transaction, into: Composable, rows: pa.Table) -> None:
    """Copy rows into a table."""
    with cursor.copy(SQL(COPY).format(into, list_names(rows.column_names))) as copy:
        for text in copy_texts(rows):
            copy.write(text)


def make_stage(cursor: Transaction, kind: str, table: SinkTable, columns: Sequence[Field]) -> Identifier:
    """Return a table of the session for rows on their way: its name says what columns it has."""
    declared = SQL(", ").join(map(declare_column, columns))
    made = zlib.crc32(f"{table.called} {declared.as_string(cursor)}".encode())
    stage = Identifier("pg_temp", f"seamline_{kind}_{made:08x}")
    cursor.execute(SQL(STAGE).format(stage, declared))
    return stage
