"""The table of a sink: how it is created, and what becomes of it when the view, or somebody else, has changed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg import sql
from psycopg.sql import SQL, Composed, Identifier

from seamline.model.errors import SetupError
from seamline.model.types.schema import Field
from seamline.sinks.postgres.column_types import postgres_type, widens
from seamline.sinks.postgres.sessions import Transaction
from seamline.sinks.row_shape import RowShape

LONGEST_NAME = 63
DESCRIBE = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""
UNIQUE = """
    SELECT array_agg(a.attname ORDER BY k.place)
    FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY k(number, place)
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number
    WHERE c.conrelid = to_regclass(%s) AND c.conname = %s
"""
MARK = "SELECT obj_description(to_regclass(%s), 'pg_class')"
INTERVALS = """
    CREATE VIEW {view} AS
    SELECT "interval", count(*) AS rows, bool_and(certified) AS certified, bool_and(complete) AS complete,
        min(epoch) AS complete_to, max(manifest_version) AS manifest_version
    FROM {table} GROUP BY "interval"
"""


@dataclass(frozen=True)
class SinkTable:
    """Where the rows of a sink are, and what they are."""

    schema: str
    """The schema of PostgreSQL."""
    name: str
    """The table's name."""
    owner: str
    """PIPELINE.SINK, to whom the table belongs: its comment says so."""
    shape: RowShape
    """The rows."""

    @property
    def called(self) -> str:
        """The table in a message."""
        return f"table {self.schema}.{self.name}"

    @property
    def identifier(self) -> Identifier:
        """The table in a statement."""
        return Identifier(self.schema, self.name)

    @property
    def view(self) -> Identifier:
        """The view of its intervals."""
        return Identifier(self.schema, f"{self.name}_intervals")

    @property
    def key(self) -> str:
        """The name of the constraint by which a row is told from others."""
        return f"{self.name}_key"

    @property
    def by_start(self) -> str:
        """The name of the index by the starts of windows."""
        return f"{self.name}_start"

    @property
    def mark(self) -> str:
        """The comment of a table that is this sink's."""
        return f"Rows of Seamline's sink {self.owner}; nobody else writes them."

    @property
    def columns(self) -> Composed:
        """The names of the columns in a statement."""
        return list_names(self.shape.names)

    @property
    def identity(self) -> Composed:
        """The names of the columns by which a row is told from others."""
        return list_names(self.shape.identity)

    def ensure(self, cursor: Transaction, *, filling: bool) -> bool:
        """Create the table, or bring it up to the view; False where its rows are not what a position says of them.

        It has no key while it is ``filling``. SetupError where the table is somebody else's, or a column's type cannot
        become the view's.
        """
        self._check_names()
        regclass = self.identifier.as_string(cursor)
        held: dict[str, str] = dict(cursor.execute(DESCRIBE, [regclass]).fetchall())
        if not held:
            self._create(cursor)
            return False
        [mark] = cursor.execute(MARK, [regclass]).fetchone() or [None]
        if mark != self.mark:
            raise SetupError(
                f"There is a {self.called} already, which is not of sink {self.owner}.",
                hint="give the sink another table=, or drop that table.",
            )
        self._widen(cursor, held)
        missing = [field for field in self.shape.columns if field.name not in held]
        for field in missing:
            cursor.execute(SQL("ALTER TABLE {} ADD COLUMN {}").format(self.identifier, declare_column(field)))
        [key] = cursor.execute(UNIQUE, [regclass, self.key]).fetchone() or [None]
        if key not in (None, list(self.shape.identity)):
            self.empty(cursor)
            return False
        self._ensure_view(cursor)
        return not missing and (filling or key is not None)

    def index(self, cursor: Transaction) -> None:
        """Make the key and the index of a table that has been filled: at once they take a fifth of the time."""
        if cursor.execute(UNIQUE, [self.identifier.as_string(cursor), self.key]).fetchone() == (None,):
            add = SQL("ALTER TABLE {} ADD CONSTRAINT {} UNIQUE NULLS NOT DISTINCT ({})")
            cursor.execute(add.format(self.identifier, Identifier(self.key), self.identity))
        create = SQL("CREATE INDEX IF NOT EXISTS {} ON {} (window_start)")
        cursor.execute(create.format(Identifier(self.by_start), self.identifier))

    def empty(self, cursor: Transaction) -> None:
        """Take all rows away, with the key and the index: rows that come are many."""
        cursor.execute(SQL("TRUNCATE {}").format(self.identifier))
        drop = SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
        cursor.execute(drop.format(self.identifier, Identifier(self.key)))
        cursor.execute(SQL("DROP INDEX IF EXISTS {}").format(Identifier(self.schema, self.by_start)))

    def _check_names(self) -> None:
        for field in self.shape.columns:
            if len(field.name.encode()) > LONGEST_NAME:
                raise SetupError(
                    f"PostgreSQL would cut the name of column {field.name!r} at {LONGEST_NAME} bytes.",
                    hint="give the measure or key a shorter name.",
                )

    def ensure_schema(self, cursor: Transaction) -> None:
        """Create the schema where there is none."""
        # CREATE SCHEMA IF NOT EXISTS asks for the right to create one even where it is there.
        if not cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone():
            cursor.execute(SQL("CREATE SCHEMA {}").format(Identifier(self.schema)))

    def _create(self, cursor: Transaction) -> None:
        columns = SQL(", ").join(declare_column(field) for field in self.shape.columns)
        cursor.execute(SQL("CREATE TABLE {} ({})").format(self.identifier, columns))
        cursor.execute(SQL("COMMENT ON TABLE {} IS {}").format(self.identifier, sql.Literal(self.mark)))
        self._ensure_view(cursor)

    def _ensure_view(self, cursor: Transaction) -> None:
        found = cursor.execute("SELECT to_regclass(%s)", [self.view.as_string(cursor)]).fetchone()
        if found == (None,):
            cursor.execute(SQL(INTERVALS).format(view=self.view, table=self.identifier))

    def _widen(self, cursor: Transaction, held: Mapping[str, str]) -> None:
        """Change the types of columns where that keeps each value; SetupError where it would not."""
        for field in self.shape.columns:
            has, wants = held.get(field.name, ""), postgres_type(field.type)
            if has in ("", wants):
                continue
            if not widens(has, wants):
                raise SetupError(
                    f"Column {field.name!r} of {self.called} is {has}, and the view's is {wants}.",
                    hint=f'"ALTER TABLE {self.schema}.{self.name} DROP COLUMN {field.name}": the sink adds it again, '
                    "and writes all rows anew.",
                )
            change = SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}")
            cursor.execute(change.format(self.identifier, Identifier(field.name), SQL(wants)))


def declare_column(field: Field) -> Composed:
    """Declare a column."""
    return SQL("{} {}").format(Identifier(field.name), SQL(postgres_type(field.type)))


def list_names(names: Iterable[str]) -> Composed:
    """List names in a statement."""
    return SQL(", ").join(map(Identifier, names))
