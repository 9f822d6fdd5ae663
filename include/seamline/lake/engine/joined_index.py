"""The rows that a join may still need, in DuckDB: what an epoch adds to them is joined with what was there.

A cache: it stands for the rows of the epochs that were taken in whose event times are at or above its horizon, and
whoever keeps it makes it again where it may not. Its file outlives its process.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.near_rows import SIDES, Rows, around_sql, hash_sql, near_sql
from seamline.lake.engine.stamped_file import StampedFile
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, arrow_type
from seamline.model.compile.compiled_join import MATCHED, CompiledJoin, JoinSide
from seamline.model.compile.derived_rows import PLACE, READ, list_kinds_sql, matched_sql, pairs_sql

HASH = "_hash"
"""The column of the hash of a row's keys: rows are found by it, and only those found are read."""
MOST_PAIRS = 10_000_000
"""Pairs that an epoch may add."""


class TooManyPairs(Exception):
    """An epoch adds more pairs than the driver joins."""


def side_schema(side: JoinSide) -> pa.Schema:
    """Return the columns of a side's rows."""
    own = [pa.field(each.name, arrow_type(each.type.spark)) for each in side.columns]
    places = [
        pa.field("_event_time", INSTANT) if name == "_event_time" else COORDINATES.field(name)
        for name in READ
    ]
    return pa.schema([*places, *own])


def no_rows(join: CompiledJoin) -> Rows:
    """Return no rows of either side."""
    left, right = (side_schema(side).empty_table() for side in join.sides)
    return left, right


class JoinedIndex(StampedFile):
    """The rows of both sides of one join, in a file below ``folder``."""

    def __init__(self, join: CompiledJoin, folder: Path) -> None:
        self.join = join
        super().__init__(folder)

    def create_tables(self) -> None:
        for number, (name, blank) in enumerate(zip(SIDES, no_rows(self.join), strict=True)):
            self.register(blank=blank)
            self.con.execute(f"CREATE TABLE kept.{name} AS {self.numbered_sql(number, 'FROM blank')}")

    def take(self, rows: Rows, horizon: int | None, stamp: str = "") -> None:
        """Take in the rows of epochs that are committed, those at or above the horizon."""
        where = "" if horizon is None else f" WHERE epoch_us(_event_time) >= {horizon}"
        self.register(taken_left=rows[0], taken_right=rows[1])
        with self.stamped(stamp):
            for number, (name, table) in enumerate(zip(SIDES, rows, strict=True)):
                if table.num_rows:
                    self.fill(number, f"SELECT * FROM taken_{name}{where}")

    def fill(self, number: int, rows: str) -> None:
        """Take in what a query returns: rows of the left side (0) or of the right one (1)."""
        self.con.execute(f"INSERT INTO kept.{SIDES[number]} {self.numbered_sql(number, rows)}")

    def numbered_sql(self, number: int, rows: str) -> str:
        """Write rows of a side as they are kept, columns by number: a definition's may be called ``rowid``."""
        own = (f"{name} AS c{at}" for at, name in enumerate(list_columns(self.join, number)))
        chosen = ", ".join([*READ, *own, f"{hash_sql(self.join, number)} AS {HASH}"])
        return f"SELECT {chosen} FROM ({rows})"

    def forget_before(self, horizon: int, stamp: str = "") -> None:
        """Forget the rows of event times before an instant, in microseconds from 1970."""
        with self.stamped(stamp):
            for name in SIDES:
                self.con.execute(f"DELETE FROM kept.{name} WHERE epoch_us(_event_time) < {horizon}")

    def count_rows(self) -> int:
        counts = " + ".join(f"(SELECT count(*) FROM kept.{name})" for name in SIDES)
        found: list[tuple[int]] = self.con.execute(f"SELECT {counts}").fetchall()
        return found[0][0]

    def derive(self, new: Rows, older: Rows, columns: Iterable[str] = ()) -> str:
        """Make the derived rows that an epoch of ``new`` rows adds, and return the name of their relation.

        ``older`` are the rows below the horizon that they may be joined with (``find_older_spans``). The relation has
        some ``columns``, or all, and stands until the next. TooManyPairs for more than ``MOST_PAIRS``.
        """
        join, con = self.join, self.con
        self.register(new_left=new[0], new_right=new[1], older_left=older[0], older_right=older[1])
        near_right, near_left = near_sql(join, new)
        lefts = self.find_rows("near_left", 0, 1, near_left)
        rights = self.find_rows("near_right", 1, 0, near_right)
        everything = f"{rights} UNION ALL BY NAME SELECT * FROM new_right"
        pairs = (
            pairs_sql(join, "SELECT * FROM new_left", everything, DUCKDB),
            pairs_sql(join, lefts, "SELECT * FROM new_right", DUCKDB),
        )
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE pairs AS FROM ({' UNION ALL '.join(pairs)}) LIMIT {MOST_PAIRS + 1}"
        )
        self.require_few_pairs()
        matched = ""
        if MATCHED in join.kinds:
            matched = newly_matched_sql(
                join, lefts, self.find_rows("rights_before", 1, 1, around_sql(join, new))
            )
        kinds = list_kinds_sql(join, "SELECT * FROM new_left", "SELECT * FROM pairs", matched, DUCKDB)
        chosen = ", ".join(map(quote_identifier, columns)) or "*"
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE derived AS SELECT {chosen} FROM ({' UNION ALL '.join(kinds)})"
        )
        return "derived"

    def find_rows(self, table: str, number: int, other: int, near: str) -> str:
        """Find the rows of one side with the keys of new rows of a side; return the text that reads them.

        They are found by a hash, of 8 bytes, before any of their columns is read; other keys may have the same.
        """
        name, seekers = SIDES[number], f"new_{SIDES[other]}"
        hashes = f"SELECT DISTINCT {hash_sql(self.join, other)} AS {HASH} FROM {seekers}"
        found = f"SELECT k.rowid AS place FROM kept.{name} k JOIN ({hashes}) USING ({HASH}){near}"
        own = (f"c{at} AS {column}" for at, column in enumerate(list_columns(self.join, number)))
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join([*READ, *own])} "
            f"FROM kept.{name} k JOIN ({found}) f ON k.rowid = f.place"
        )
        return f"SELECT * FROM {table} UNION ALL BY NAME SELECT * FROM older_{name}"

    def require_few_pairs(self) -> None:
        """Refuse more pairs than are joined here: keys that most rows have."""
        [(count,)] = self.con.execute("SELECT count(*) FROM pairs").fetchall()
        if count > MOST_PAIRS:
            keys = ", ".join(quote_identifier(self.join.left.named(each[0])) for each in self.join.on)
            self.con.execute(
                f"SELECT {keys}, count(*) FROM pairs GROUP BY ALL ORDER BY count(*) DESC LIMIT 1"
            )
            *key, times = self.con.fetchall()[0]
            self.con.execute("DROP TABLE pairs")
            told = ", ".join(f"{left} = {value}" for (left, *_), value in zip(self.join.on, key, strict=True))
            raise TooManyPairs(
                f"an epoch adds more than {MOST_PAIRS:,} pairs, {times:,} of them and more for {told}; leave such "
                "rows out with where= of a source, or use shorter bounds"
            )


def list_columns(join: CompiledJoin, number: int) -> list[str]:
    """List a side's columns of the definition, quoted."""
    return [quote_identifier(each.name) for each in join.sides[number].columns]


def newly_matched_sql(join: CompiledJoin, lefts: str, rights: str) -> str:
    """Write the left rows that have one of ``pairs`` and had no pair among the rows of before."""
    places = ", ".join(PLACE)
    touched = f"SELECT ({places}) FROM pairs WHERE _left_epoch < _right_epoch"
    old = pairs_sql(join, f"SELECT * FROM ({lefts}) WHERE ({places}) IN ({touched})", rights, DUCKDB)
    return matched_sql(
        join, f"SELECT * FROM pairs WHERE ({places}) NOT IN (SELECT ({places}) FROM ({old}))", DUCKDB
    )
