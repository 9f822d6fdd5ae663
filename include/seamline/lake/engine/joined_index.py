"""The rows that a join may still need, in DuckDB: what an epoch adds to them is joined with what was there.

A cache: it stands for the rows of the epochs that were taken in whose event times are at or above its horizon, and
whoever keeps it makes it again where it may not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, arrow_type
from seamline.model.compile.compiled_join import MATCHED, CompiledJoin, JoinSide
from seamline.model.compile.derived_rows import PLACE, READ, list_kinds_sql, matched_sql, pairs_sql
from seamline.model.time.zone_clock import MICROSECOND

SIDES = ("left", "right")
Rows = tuple[pa.Table, pa.Table]
"""Rows of the left side and of the right one, with the columns of ``side_schema``."""


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


class JoinedIndex:
    """The rows of both sides of one join, in a file below ``folder``."""

    def __init__(self, join: CompiledJoin, folder: Path) -> None:
        self.join, self.con = join, open_duckdb()
        folder.mkdir(parents=True, exist_ok=True)
        self.con.execute(f"ATTACH {quote_literal(str(folder / 'rows.duckdb'))} AS kept")
        for name, blank in zip(SIDES, no_rows(join), strict=True):
            self.register(blank=blank)
            self.con.execute(f"CREATE OR REPLACE TABLE kept.{name} AS FROM blank")

    def register(self, **tables: pa.Table) -> None:
        """Let the SQL that follows read tables by name, in the place of those of the same names."""
        for name, table in tables.items():
            self.con.register(name, table)

    def close(self) -> None:
        """Close the file."""
        self.con.close()

    def take(self, rows: Rows, horizon: int | None) -> None:
        """Take in the rows of epochs that are committed, those at or above the horizon."""
        where = "" if horizon is None else f" WHERE epoch_us(_event_time) >= {horizon}"
        for name, table in zip(SIDES, rows, strict=True):
            if table.num_rows:
                self.register(taken=table)
                self.con.execute(f"INSERT INTO kept.{name} BY NAME SELECT * FROM taken{where}")

    def forget_before(self, horizon: int) -> None:
        """Forget the rows of event times before an instant, in microseconds from 1970."""
        for name in SIDES:
            self.con.execute(f"DELETE FROM kept.{name} WHERE epoch_us(_event_time) < {horizon}")

    def count_rows(self) -> int:
        """Count the rows of both sides."""
        counts = " + ".join(f"(SELECT count(*) FROM kept.{name})" for name in SIDES)
        found: list[tuple[int]] = self.con.execute(f"SELECT {counts}").fetchall()
        return found[0][0]

    def derive(self, new: Rows, older: Rows) -> str:
        """Make the derived rows that an epoch of ``new`` rows adds, and return the name of their relation.

        ``older`` are the rows below the horizon that they reach (``find_reach``). The relation stands until the next.
        """
        join, con = self.join, self.con
        self.register(new_left=new[0], new_right=new[1], older_left=older[0], older_right=older[1])
        before = {
            name: f"SELECT * FROM kept.{name}{where} UNION ALL BY NAME SELECT * FROM older_{name}"
            for name, where in zip(SIDES, near_sql(join, new), strict=True)
        }
        everything = f"{before['right']} UNION ALL BY NAME SELECT * FROM new_right"
        pairs = (
            pairs_sql(join, "SELECT * FROM new_left", everything, DUCKDB),
            pairs_sql(join, before["left"], "SELECT * FROM new_right", DUCKDB),
        )
        con.execute(f"CREATE OR REPLACE TEMP TABLE pairs AS {' UNION ALL '.join(pairs)}")
        rights = "SELECT * FROM kept.right UNION ALL BY NAME SELECT * FROM older_right"
        matched = newly_matched_sql(join, before["left"], rights) if MATCHED in join.kinds else ""
        kinds = list_kinds_sql(join, "SELECT * FROM new_left", "SELECT * FROM pairs", matched, DUCKDB)
        con.execute(f"CREATE OR REPLACE TEMP TABLE derived AS {' UNION ALL '.join(kinds)}")
        return "derived"


def near_sql(join: CompiledJoin, new: Rows) -> tuple[str, str]:
    """Write which left and right rows new rows of the other side may be joined with: DuckDB skips groups of others."""
    left, right = (read_bounds(table) for table in new)
    return (
        between_sql(right and (right[0] - join.upper, right[1] - join.lower)),
        between_sql(left and (left[0] + join.lower, left[1] + join.upper)),
    )


def read_bounds(table: pa.Table) -> tuple[int, int] | None:
    """Return the first and the last event time of rows, in microseconds; None without rows."""
    if not table.num_rows:
        return None
    times = table["_event_time"].cast(INSTANT).cast(pa.int64())
    return pc.min(times).as_py(), pc.max(times).as_py()


def between_sql(bounds: tuple[int, int] | None) -> str:
    """Write the condition that an event time is within bounds; no row is without any."""
    if bounds is None:
        return " WHERE false"
    first, last = (f"make_timestamptz({bound})" for bound in bounds)
    return f" WHERE _event_time >= {first} AND _event_time <= {last}"


def newly_matched_sql(join: CompiledJoin, lefts: str, rights: str) -> str:
    """Write the left rows that have one of ``pairs`` and had no pair among the rows of before."""
    places = ", ".join(PLACE)
    touched = f"SELECT ({places}) FROM pairs WHERE _left_epoch < _right_epoch"
    old = pairs_sql(join, f"SELECT * FROM ({lefts}) WHERE ({places}) IN ({touched})", rights, DUCKDB)
    return matched_sql(
        join, f"SELECT * FROM pairs WHERE ({places}) NOT IN (SELECT ({places}) FROM ({old}))", DUCKDB
    )


def find_reach(join: CompiledJoin, new: Rows) -> tuple[int, int] | None:
    """Return the first and the last event time, in microseconds, of rows that new ones may be joined with.

    The rows that a left row has found before are among them, which say whether it is newly matched. None without rows.
    """
    bounds = [each for each in map(read_bounds, new) if each]
    if not bounds:
        return None
    reach = (join.before + join.after) // MICROSECOND
    return min(first for first, _ in bounds) - reach, max(last for _, last in bounds) + reach
