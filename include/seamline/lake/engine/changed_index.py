"""What is known of a table's rows after all changes, in DuckDB: what an epoch changes is told by it.

A cache: it stands for the rows of the epochs that were taken in, and whoever keeps it makes it again where it may not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.joined_index import side_schema
from seamline.lake.engine.stamped_file import StampedFile
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.changes.changes_sql import (
    GREATEST,
    changes_sql,
    contributions_sql,
    last_images_sql,
    list_image_fields,
)
from seamline.model.compile.changes.compiled_changelog import DELETED, CompiledChangelog


def image_schema(changelog: CompiledChangelog) -> pa.Schema:
    """Return the columns of what is known of a row of the table."""
    order = changelog.changes.order
    return pa.schema(
        [
            *(pa.field(each.name, arrow_type(each.type.spark)) for each in list_image_fields(changelog)),
            pa.field(GREATEST, arrow_type(order.type.spark if order else "BIGINT")),
            pa.field(DELETED, pa.bool_()),
        ]
    )


def changed_schema(changelog: CompiledChangelog) -> pa.Schema:
    """Return the columns of the rows that are read of the log."""
    return side_schema(changelog.sides[0])


class ChangedIndex(StampedFile):
    """What is known of the rows of one changelog's table, in a file below ``folder``."""

    def __init__(self, changelog: CompiledChangelog, folder: Path) -> None:
        self.changelog = changelog
        fields = list_image_fields(changelog)
        # By number: a definition's columns may be called ``rowid``.
        self.names = {each.name: f"c{number}" for number, each in enumerate(fields)}
        self.prepared: pa.Table | None = None
        super().__init__(folder)

    def create_tables(self) -> None:
        self.register(blank=image_schema(self.changelog).empty_table())
        self.con.execute(f"CREATE TABLE kept.images AS {self.numbered_sql('blank')}")

    def numbered_sql(self, relation: str) -> str:
        """Write what is known as it is kept."""
        own = (f"{quote_identifier(name)} AS {kept}" for name, kept in self.names.items())
        return f"SELECT {', '.join([*own, GREATEST, DELETED])} FROM {relation}"

    def named_sql(self, relation: str, alias: str = "") -> str:
        """Write what is kept by the names of columns."""
        own = (f"{alias}{kept} AS {quote_identifier(name)}" for name, kept in self.names.items())
        return f"SELECT {', '.join([*own, GREATEST, DELETED])} FROM {relation}"

    def prepare(self, rows: pa.Table) -> None:
        """Find the changes among the rows of an epoch that is read: ``changes``, and where their keys are kept."""
        self.register(new_rows=rows)
        self.prepare_relation("new_rows")
        self.prepared = rows

    def prepare_relation(self, relation: str) -> None:
        """Find the changes among the rows of a relation."""
        keys = [each.name for each in self.changelog.changes.key]
        sought = ", ".join(map(quote_identifier, keys))
        same = " AND ".join(
            f"k.{self.names[name]} IS NOT DISTINCT FROM s.{quote_identifier(name)}" for name in keys
        )
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE places AS SELECT k.rowid AS place FROM kept.images k "
            f"SEMI JOIN (SELECT DISTINCT {sought} FROM {relation}) s ON {same}"
        )
        known = self.named_sql("kept.images k JOIN places p ON k.rowid = p.place")
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE known AS {known}")
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE changes AS {changes_sql(self.changelog, 'known', relation, DUCKDB)}"
        )

    def derive(self, rows: pa.Table) -> str:
        """Find what the rows of an epoch take away and add; return the name of the relation, which has a sign."""
        self.prepare(rows)
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE derived AS {contributions_sql(self.changelog, 'changes', DUCKDB)}"
        )
        return "derived"

    def take(self, rows: pa.Table, stamp: str = "") -> None:
        """Take in the rows of an epoch that is committed."""
        if self.prepared is not rows:
            self.prepare(rows)
        with self.stamped(stamp):
            self.keep_prepared()
        self.prepared = None

    def keep_prepared(self) -> None:
        """Keep what is known after the changes that were found."""
        last = last_images_sql(self.changelog, "changes", DUCKDB)
        self.con.execute("DELETE FROM kept.images WHERE rowid IN (SELECT place FROM places)")
        self.con.execute(f"INSERT INTO kept.images {self.numbered_sql(f'({last})')}")

    def take_relation(self, relation: str, stamp: str) -> None:
        """Take in the rows of a relation of the connection."""
        self.prepared = None
        self.prepare_relation(relation)
        with self.stamped(stamp):
            self.keep_prepared()

    def load(self, relation: str, stamp: str) -> None:
        """Begin with what a snapshot knows, in place of all that is kept."""
        with self.stamped(stamp):
            self.con.execute("DELETE FROM kept.images")
            self.con.execute(f"INSERT INTO kept.images {self.numbered_sql(relation)}")

    def count_rows(self) -> int:
        found: list[tuple[int]] = self.con.execute("SELECT count(*) FROM kept.images").fetchall()
        return found[0][0]
