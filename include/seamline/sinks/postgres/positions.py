"""The positions of sinks in a schema of PostgreSQL, and the tokens by which one writer fences another."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg.sql import SQL, Identifier

from seamline.model.errors import Fenced
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.postgres.sessions import Transaction
from seamline.sinks.target_errors import TargetUnavailable

TABLE = "seamline_positions"
CREATE = """
    CREATE TABLE {} (
        pipeline text NOT NULL, sink text NOT NULL, columns text[] NOT NULL, position text, token bigint NOT NULL,
        writer integer NOT NULL, at timestamp with time zone NOT NULL, PRIMARY KEY (pipeline, sink)
    )
"""
CLAIM = """
    INSERT INTO {table} AS held (pipeline, sink, columns, token, writer, at)
    VALUES (%(pipeline)s, %(sink)s, %(columns)s, 1, pg_backend_pid(), now())
    ON CONFLICT (pipeline, sink) DO UPDATE
    SET token = held.token + 1, writer = pg_backend_pid(), columns = excluded.columns,
        position = CASE WHEN held.columns = excluded.columns THEN held.position END
    RETURNING token, position
"""
EVICT = """
    SELECT pg_terminate_backend(a.pid) FROM {table} p JOIN pg_stat_activity a ON a.pid = p.writer
    WHERE p.pipeline = %(pipeline)s AND p.sink = %(sink)s AND a.application_name = %(application)s
        AND a.usename = current_user
"""
LOOK = "SELECT position FROM {} WHERE pipeline = %s AND sink = %s"
LOCK = "SELECT token, position FROM {} WHERE pipeline = %s AND sink = %s FOR UPDATE"
MOVE = "UPDATE {} SET position = %s, at = now() WHERE pipeline = %s AND sink = %s"


@dataclass(frozen=True)
class Positions:
    """The row of one sink in the table of positions."""

    schema: str
    """The schema of PostgreSQL."""
    pipeline: str
    """The pipeline's name."""
    sink: str
    """The sink's name."""

    @property
    def application(self) -> str:
        """What the sink's sessions are called; PostgreSQL cuts that at 63 bytes."""
        return f"seamline {self.pipeline}.{self.sink}"[:63]

    @property
    def table(self) -> Identifier:
        """The table in a statement."""
        return Identifier(self.schema, TABLE)

    def ensure(self, cursor: Transaction) -> None:
        """Create the table where there is none."""
        # CREATE TABLE IF NOT EXISTS asks for the right to create one even where it is there.
        if cursor.execute("SELECT to_regclass(%s)", [self.table.as_string(cursor)]).fetchone() == (None,):
            cursor.execute(SQL(CREATE).format(self.table))

    def claim(self, cursor: Transaction, columns: list[str]) -> tuple[int, str | None]:
        """Raise the token, and return it and the position as it is written: None for none, or one of other columns."""
        given = {"pipeline": self.pipeline, "sink": self.sink, "columns": columns}
        token, position = cursor.execute(SQL(CLAIM).format(table=self.table), given).fetchone() or (0, None)
        return int(str(token)), None if position is None else str(position)

    def evict(self, cursor: Transaction) -> None:
        """End the session of an earlier writer: it holds the position, and may be frozen."""
        given = {"pipeline": self.pipeline, "sink": self.sink, "application": self.application}
        cursor.execute(SQL(EVICT).format(table=self.table), given)

    def look(self, cursor: Transaction) -> str | None:
        """Read the position as it is written; None where there is none."""
        if cursor.execute("SELECT to_regclass(%s)", [self.table.as_string(cursor)]).fetchone() == (None,):
            return None
        row = cursor.execute(SQL(LOOK).format(self.table), [self.pipeline, self.sink]).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def lock(self, cursor: Transaction, token: int) -> str | None:
        """Hold the position until the transaction ends, and return it as text; Fenced where another has claimed it."""
        row = cursor.execute(SQL(LOCK).format(self.table), [self.pipeline, self.sink]).fetchone()
        if row is None:
            raise TargetUnavailable(
                f"Somebody has deleted the position of sink {self.pipeline}.{self.sink} in {self.schema}.{TABLE}.",
                hint="the sink starts again, and writes all rows anew.",
            )
        if row[0] != token:
            raise Fenced(
                f"Another process writes sink {self.pipeline}.{self.sink}: its token is {row[0]}, this one's {token}.",
                hint="this one ends; nothing is to be done.",
            )
        return None if row[1] is None else str(row[1])

    def move(self, cursor: Transaction, position: SinkPosition | None) -> None:
        """Write the position; None forgets it."""
        text = None if position is None else position.to_json()
        cursor.execute(SQL(MOVE).format(self.table), [text, self.pipeline, self.sink])
