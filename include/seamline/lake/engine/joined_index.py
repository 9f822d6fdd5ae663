"""The rows that a join may still need, in DuckDB: what an epoch adds to them is joined with what was there.

A cache: it stands for the rows of the epochs that were taken in whose event times are at or above its horizon, and
whoever keeps it makes it again where it may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, arrow_type
from seamline.model.compile.compiled_join import MATCHED, CompiledJoin, JoinSide
from seamline.model.compile.derived_rows import PLACE, READ, list_kinds_sql, matched_sql, pairs_sql
from seamline.model.time.zone_clock import MICROSECOND

SIDES = ("left", "right")
Rows = tuple[pa.Table, pa.Table]
"""Rows of the left side and of the right one, with the columns of ``side_schema``."""
Span = tuple[int, int]
"""Event times, in microseconds from 1970: the first, and that before which all are."""
HASH = "_hash"
"""The column of the hash of a row's keys: rows are found by it, and only those found are read."""
MEMORY = 512 << 20
"""Bytes of an index that are in memory at most; the rest is in its file."""
MOST_PAIRS = 10_000_000
"""Pairs that an epoch may add."""
MOST_SPANS = 32
"""Spans of older rows that are read apart."""


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


class JoinedIndex:
    """The rows of both sides of one join, in a file below ``folder``."""

    def __init__(self, join: CompiledJoin, folder: Path) -> None:
        self.join, self.con = join, open_duckdb()
        folder.mkdir(parents=True, exist_ok=True)
        self.con.execute(f"SET memory_limit = '{MEMORY >> 20}MiB'")
        # Nobody opens the file again: what is written is not written to a log before.
        file = quote_literal(str(folder / "rows.duckdb"))
        self.con.execute(f"ATTACH {file} AS kept (RECOVERY_MODE no_wal_writes)")
        for number, (name, blank) in enumerate(zip(SIDES, no_rows(join), strict=True)):
            self.register(blank=blank)
            self.con.execute(f"CREATE TABLE kept.{name} AS {self.numbered_sql(number, 'FROM blank')}")

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
        for number, table in enumerate(rows):
            if table.num_rows:
                self.register(taken=table)
                self.fill(number, f"SELECT * FROM taken{where}")

    def fill(self, number: int, rows: str) -> None:
        """Take in what a query returns: rows of the left side (0) or of the right one (1)."""
        self.con.execute(f"INSERT INTO kept.{SIDES[number]} {self.numbered_sql(number, rows)}")

    def numbered_sql(self, number: int, rows: str) -> str:
        """Write rows of a side as they are kept, columns by number: a definition's may be called ``rowid``."""
        own = (f"{name} AS c{at}" for at, name in enumerate(list_columns(self.join, number)))
        chosen = ", ".join([*READ, *own, f"{hash_sql(self.join, number)} AS {HASH}"])
        return f"SELECT {chosen} FROM ({rows})"

    @contextmanager
    def on_all_cores(self) -> Iterator[None]:
        """Work on all cores while the block runs, in any order of rows: at a start nothing else is to be done."""
        self.con.execute("RESET threads; SET preserve_insertion_order = false")
        try:
            yield
        finally:
            self.con.execute("SET threads = 1")

    def forget_before(self, horizon: int) -> None:
        """Forget the rows of event times before an instant, in microseconds from 1970."""
        for name in SIDES:
            self.con.execute(f"DELETE FROM kept.{name} WHERE epoch_us(_event_time) < {horizon}")

    def count_rows(self) -> int:
        """Count the rows of both sides."""
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


def hash_sql(join: CompiledJoin, number: int) -> str:
    """Write the hash of the keys of a row of the left side (0) or of the right one (1)."""
    return f"hash({', '.join(list_keys(join, number))})"


def list_keys(join: CompiledJoin, number: int) -> list[str]:
    """List the keys of the left side (0) or of the right one (1), quoted."""
    return [quote_identifier(right if number else left) for left, right, _ in join.on]


def list_columns(join: CompiledJoin, number: int) -> list[str]:
    """List a side's columns of the definition, quoted."""
    return [quote_identifier(each.name) for each in join.sides[number].columns]


def sought_rows_sql(join: CompiledJoin, number: int, rows: str, horizon: int) -> str:
    """Write the rows of a side that have the keys of any of ``new_left`` and ``new_right`` in reach of a horizon."""
    late = f"WHERE epoch_us(_event_time) < {horizon + reach_of(join)}"
    named = [
        ", ".join(f"{key} AS c{at}" for at, key in enumerate(list_keys(join, other))) for other in range(2)
    ]
    keys = " UNION ".join(
        f"SELECT {keys} FROM new_{name} {late}" for name, keys in zip(SIDES, named, strict=True)
    )
    same = " AND ".join(
        f"s.{key} {DUCKDB.same if safe else '='} sought.c{at}"
        for at, (key, (_, _, safe)) in enumerate(zip(list_keys(join, number), join.on, strict=True))
    )
    return f"SELECT s.* FROM ({rows}) s SEMI JOIN ({keys}) sought ON {same}"


def near_sql(join: CompiledJoin, new: Rows) -> tuple[str, str]:
    """Write which right and left rows new rows of the other side may be joined with: DuckDB skips groups of others."""
    left, right = (read_bounds(table) for table in new)
    return (
        between_sql(left and (left[0] + join.lower, left[1] + join.upper)),
        between_sql(right and (right[0] - join.upper, right[1] - join.lower)),
    )


def around_sql(join: CompiledJoin, new: Rows) -> str:
    """Write which right rows the left rows may have found before that new right rows are joined with."""
    bounds, reach = read_bounds(new[1]), reach_of(join)
    return between_sql(bounds and (bounds[0] - reach, bounds[1] + reach))


def reach_of(join: CompiledJoin) -> int:
    """Return how far from a row those may be that its pairs are made of, in microseconds, both ways."""
    return (join.before + join.after) // MICROSECOND


def read_bounds(table: pa.Table) -> tuple[int, int] | None:
    """Return the first and the last event time of rows, in microseconds; None without rows."""
    if not table.num_rows:
        return None
    times = read_times(table)
    return int(times.min()), int(times.max())


def read_times(table: pa.Table) -> np.ndarray:
    """Return the event times of rows, in microseconds from 1970."""
    found: np.ndarray = table["_event_time"].cast(INSTANT).cast(pa.int64()).to_numpy()
    return found


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


def find_older_spans(join: CompiledJoin, new: Rows, horizon: int | None) -> list[Span]:
    """List the spans below a horizon of the rows that new ones may be joined with, apart and in order.

    The rows that a left row has found before are among them, which say whether it is newly matched. Late rows of many
    times have wider ones.
    """
    if horizon is None:
        return []
    reach = reach_of(join)
    times = np.concatenate([read_times(table) for table in new])
    times = times[times < horizon + reach]
    width = max(reach, 1)
    cells = np.unique(times // width)
    while len(cells) > MOST_SPANS:
        width *= 2
        cells = np.unique(times // width)
    found: list[Span] = []
    for cell in cells.tolist():
        first, end = cell * width - reach, min((cell + 1) * width + reach, horizon)
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found
