"""What is known of a table's rows after all changes, in DuckDB: what an epoch changes is told by it.

A cache: it stands for the rows of the epochs that were taken in, and whoever keeps it makes it again where it may not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.joined_index import side_schema
from seamline.lake.engine.ordered_changes import OrderedChanges, order_changes
from seamline.lake.engine.stamped_file import StampedFile
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.changes.changes_sql import (
    GREATEST,
    changes_sql,
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
        self.prepared: tuple[pa.Table, OrderedChanges] | None = None
        """The rows of an epoch that is being committed, and the changes among them."""
        super().__init__(folder)

    def create_tables(self) -> None:
        self.register(blank=image_schema(self.changelog).empty_table())
        self.con.execute(f"CREATE TABLE kept.images AS {self.numbered_sql('blank')}")

    def numbered_sql(self, relation: str) -> str:
        """Write what is known as it is kept."""
        own = (f"{quote_identifier(name)} AS {kept}" for name, kept in self.names.items())
        return f"SELECT {', '.join([*own, GREATEST, DELETED])} FROM {relation}"

    def named_sql(self, relation: str, *more: str) -> str:
        """Write what is kept by the names of columns, and more columns behind them."""
        own = (f"{kept} AS {quote_identifier(name)}" for name, kept in self.names.items())
        return f"SELECT {', '.join([*own, GREATEST, DELETED, *more])} FROM {relation}"

    def prepare(self, rows: pa.Table) -> OrderedChanges:
        """Find the changes among the rows of an epoch that is read, and where what they replace is kept."""
        if self.prepared and self.prepared[0] is rows:
            return self.prepared[1]
        self.register(new_rows=rows)
        self.find_places("new_rows")
        known = self.con.sql(self.known_sql("place")).to_arrow_table()
        images = known.drop_columns(["place"]).cast(image_schema(self.changelog))
        changes = order_changes(self.changelog, images, rows)
        gone = pa.table({"place": known["place"].take(pa.array(changes.replaced()))})
        self.register(gone=gone, learned=changes.list_new_images())
        self.prepared = rows, changes
        return changes

    def find_places(self, relation: str) -> None:
        """Find where what is known of the keys of a relation is kept: ``places``."""
        keys = [each.name for each in self.changelog.changes.key]
        sought = ", ".join(map(quote_identifier, keys))
        same = " AND ".join(
            f"k.{self.names[name]} IS NOT DISTINCT FROM s.{quote_identifier(name)}" for name in keys
        )
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE places AS SELECT k.rowid AS place FROM kept.images k "
            f"SEMI JOIN (SELECT DISTINCT {sought} FROM {relation}) s ON {same}"
        )

    def known_sql(self, *more: str) -> str:
        """Write what is known at ``places``, with more columns."""
        return self.named_sql("kept.images k JOIN places p ON k.rowid = p.place", *more)

    def derive(self, rows: pa.Table) -> str:
        """Find what the rows of an epoch take away and add; return the name of the relation, which has a sign."""
        self.register(derived=self.prepare(rows).list_contributions())
        return "derived"

    def take(self, rows: pa.Table, stamp: str = "") -> None:
        """Take in the rows of an epoch that is committed."""
        self.prepare(rows)
        self.keep("gone", "learned", stamp)

    def keep(self, gone: str, learned: str, stamp: str) -> None:
        """Keep what a relation has in place of what is at the places of another one."""
        self.prepared = None
        with self.stamped(stamp):
            self.con.execute(f"DELETE FROM kept.images WHERE rowid IN (SELECT place FROM {gone})")
            self.con.execute(f"INSERT INTO kept.images {self.numbered_sql(learned)}")

    def take_relation(self, relation: str, stamp: str) -> None:
        """Take in the rows of a relation of the connection, of which there may be more than memory has room for."""
        self.find_places(relation)
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE known AS {self.known_sql()}")
        changes = f"({changes_sql(self.changelog, 'known', relation, DUCKDB)})"
        last = last_images_sql(self.changelog, changes, DUCKDB)
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE learned_of_many AS {last}")
        self.keep("places", "learned_of_many", stamp)

    def load(self, relation: str, stamp: str) -> None:
        """Begin with what a snapshot knows, in place of all that is kept."""
        with self.stamped(stamp):
            self.con.execute("DELETE FROM kept.images")
            self.con.execute(f"INSERT INTO kept.images {self.numbered_sql(relation)}")

    def count_rows(self) -> int:
        found: list[tuple[int]] = self.con.execute("SELECT count(*) FROM kept.images").fetchall()
        return found[0][0]
