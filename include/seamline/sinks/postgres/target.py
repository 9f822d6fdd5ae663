"""A table of PostgreSQL as a sink's target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress

import psycopg
import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.postgres.explained_errors import explained_postgres
from seamline.sinks.postgres.held_texts import as_read_back, spell_places, spell_values
from seamline.sinks.postgres.positions import Positions
from seamline.sinks.postgres.reading import PostgresReading
from seamline.sinks.postgres.row_writing import (
    delete_all,
    delete_handles,
    delete_rows,
    insert_rows,
    upsert_rows,
)
from seamline.sinks.postgres.sessions import Session, Transaction, open_session, transaction
from seamline.sinks.postgres.sink_table import SinkTable
from seamline.sinks.row_shape import RowShape
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

WAIT, SHORT_WAIT = "30s", "2s"
"""How long a lock is waited for, and how long for an earlier writer to finish."""
READER = "seamline reader"
"""What a session is called that only reads."""
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('seamline'))"


class PostgresTarget:
    """The table of one sink, for one version of its view; a flip is taken over by another target."""

    def __init__(self, sink: PostgresSink, view: CompiledView, connection: ServerConnection) -> None:
        self._connection = connection
        self._positions = Positions(sink.schema, view.pipeline, sink.id)
        owner = f"{view.pipeline}.{sink.id}"
        self._table = SinkTable(sink.schema, sink.table, owner, RowShape.of(view))
        self._session: Session | None = None
        self._token = 0

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers, bring the table up to the view, and return the position.

        None where there is none, or where rows are not what it says: the first write deletes what is there.
        """
        self.close()
        try:
            with explained_postgres(self._connection, self._table.called):
                self._session = open_session(self._connection, self._positions.application)
                told = self._claim_from_others(self._session)
        except BaseException:
            self.close()
            raise
        # One that cannot be read leaves the session open: what is there may be cleared.
        return read_position(told)

    def _claim_from_others(self, session: Session) -> str | None:
        try:
            return self._claim(session, SHORT_WAIT)
        except psycopg.errors.LockNotAvailable:
            with session.cursor() as cursor:
                self._positions.evict(cursor)
            return self._claim(session, WAIT)

    def _claim(self, session: Session, wait: str) -> str | None:
        with transaction(session, wait) as cursor:
            cursor.execute(ONE_AT_A_TIME)
            self._table.ensure_schema(cursor)
            self._positions.ensure(cursor)
            self._token, told = self._positions.claim(cursor, self._table.shape.names)
            whole = self._table.ensure(cursor, filling=may_be_filling(told))
            if not whole:
                self._positions.move(cursor, None)
        return told if whole else None

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write changes and the position in one transaction."""
        with self._fenced() as (cursor, told):
            held = read_position(told)
            if held is None:
                delete_all(cursor, self._table)
            filling = is_filling(held)
            put = insert_rows if filling else upsert_rows
            for batch in batches:
                if batch.deletions.num_rows and not filling:
                    delete_rows(cursor, self._table, batch.deletions)
                if batch.upserts.num_rows:
                    put(cursor, self._table, batch.upserts)
            if filling and not is_filling(position):
                self._table.index(cursor)
            hit_failpoint("sink_rows")
            self._positions.move(cursor, position)
        hit_failpoint("sink_written")

    def clear(self) -> None:
        """Forget the position and take all rows away in one transaction."""
        with self._fenced() as (cursor, _):
            self._table.empty(cursor)
            self._positions.move(cursor, None)

    @contextmanager
    def open_reading(self) -> Iterator[PostgresReading]:
        """Read the table beside who writes it, as it is at one moment."""
        with (
            explained_postgres(self._connection, self._table.called),
            closing(open_session(self._connection, READER)) as session,
            transaction(session, WAIT) as cursor,
        ):
            yield PostgresReading(cursor, self._table, self._positions)

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Write what tells rows apart as JSON."""
        return spell_places(self._table.shape, as_read_back(self._table.shape, rows))

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write rows as JSON, as they are read back."""
        return spell_values(self._table.shape, as_read_back(self._table.shape, rows))

    def delete_held(self, held: pa.Table, position: SinkPosition) -> None:
        """Delete rows by where they are in the table."""
        with self._fenced() as (cursor, _):
            delete_handles(cursor, self._table, held["handle"].to_pylist())

    def close(self) -> None:
        """Let go of the connection."""
        if self._session is not None:
            with suppress(psycopg.Error):
                self._session.close()
        self._session = None

    @contextmanager
    def _fenced(self) -> Iterator[tuple[Transaction, str | None]]:
        """Do something in a transaction that holds the position, as it is written; Fenced."""
        if self._session is None or self._session.closed:
            raise TargetUnavailable(
                f"The connection to PostgreSQL at {self._connection.called} was lost.",
                hint="the sink takes over again by itself.",
            )
        with (
            explained_postgres(self._connection, self._table.called),
            transaction(self._session, WAIT) as cursor,
        ):
            yield cursor, self._positions.lock(cursor, self._token)


def read_position(told: str | None) -> SinkPosition | None:
    """Read a position as it is written; SetupError where it is none."""
    return None if told is None else SinkPosition.from_json(told)


def may_be_filling(told: str | None) -> bool:
    """Return whether a target may have no more than a part of its first rows: of what cannot be read nobody knows."""
    try:
        return is_filling(read_position(told))
    except SetupError:
        return True


def is_filling(position: SinkPosition | None) -> bool:
    """Return whether a target has no more than a part of its first rows."""
    return position is None or position.version < 0
