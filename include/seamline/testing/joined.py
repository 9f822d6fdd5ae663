"""Joined rows for the dull engine: every left row beside every right one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, arrow_type
from seamline.model.compile.compiled_join import KIND, LEFT, MATCHED, PAIR, CompiledJoin, JoinSide
from seamline.model.compile.derived_rows import PLACE, VERSION_ORDER
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.time.intervals import EPOCH, Interval
from seamline.model.time.zone_clock import MICROSECOND
from seamline.testing.folding import query_rows

Record = dict[str, Any]


def derive_plain_rows(
    con: duckdb.DuckDBPyConnection, join: CompiledJoin, accepted: Iterable[pa.Table]
) -> pa.Table:
    """Return all derived rows of accepted ones: those of the epoch at which each is there first.

    Of an as-of join they are those that are there when all others are.
    """
    tables = list(accepted)
    lefts, rights = (list_side_rows(con, side, tables) for side in join.sides)
    if join.latest:
        made = [describe_latest(join, left, rights) for left in lefts]
        return pa.Table.from_pylist(made, derived_schema(join))
    pairs = [(left, right) for left in lefts for right in rights if is_pair(join, left, right)]
    pairs = keep_true(con, join, pairs)
    first: dict[tuple[Any, ...], tuple[int, Record]] = {}
    for left, right in pairs:
        epoch, place = max(left["_epoch"], right["_epoch"]), tuple(left[name] for name in PLACE)
        first[place] = (min(epoch, first[place][0] if place in first else epoch), left)
    made = [
        *(
            describe_row(join, PAIR, max(left["_epoch"], right["_epoch"]), left, right)
            for left, right in pairs
        ),
        *(describe_row(join, LEFT, left["_epoch"], left, None) for left in lefts),
        *(describe_row(join, MATCHED, epoch, left, None) for epoch, left in first.values()),
    ]
    return pa.Table.from_pylist([row for row in made if row[KIND] in join.kinds], derived_schema(join))


def describe_latest(join: CompiledJoin, left: Record, rights: Iterable[Record]) -> Record:
    """Return a left row with its latest right one, or without any."""
    found = [each for each in rights if is_pair(join, left, each)]
    latest = max(found, key=lambda each: tuple(each[name] for name in VERSION_ORDER), default=None)
    epochs = [each["_epoch"] for each in (left, latest) if each]
    return describe_row(join, PAIR if latest else LEFT, max(epochs), left, latest)


def list_revised_rows(shown: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[pa.Table, int]]:
    """List what each epoch, with its number, changes in an as-of join: rows, and 1 or -1 if they are withdrawn."""
    before: dict[tuple[Any, ...], Record] = {}
    for number, table in shown:
        now = {tuple(row[name] for name in PLACE): {**row, "_epoch": 0} for row in table.to_pylist()}
        for some, others, sign in ((now, before, 1), (before, now, -1)):
            rows = [{**row, "_epoch": number} for at, row in some.items() if others.get(at) != row]
            yield pa.Table.from_pylist(rows, table.schema), sign
        before = now


def list_side_rows(
    con: duckdb.DuckDBPyConnection, side: JoinSide, tables: Iterable[pa.Table]
) -> list[Record]:
    """List the rows of a side: those of its source that are selected, and for which its condition is true."""
    found: list[Record] = []
    for table in tables:
        rows = table.to_pylist()
        chosen = [(True,)] * len(rows)
        if side.where and rows:
            chosen = query_rows(con, f"SELECT ({side.where.duckdb}) IS TRUE FROM rows", table)
        found += [
            row
            for row, (true,) in zip(rows, chosen, strict=True)
            if true and row[SOURCE] == side.source and row.get(SELECTED, True)
        ]
    return found


def count_unanswered_rows(
    con: duckdb.DuckDBPyConnection, join: CompiledJoin, accepted: Iterable[pa.Table], interval: Interval
) -> int | None:
    """Count the left rows of an interval of whose question there is no record; None for another join."""
    if not join.question:
        return None
    tables = list(accepted)
    # Errors may be in a side, and are in no view then.
    every = [table.drop_columns([SELECTED]) if SELECTED in table.column_names else table for table in tables]
    records = list_side_rows(con, replace(join.right, where=join.recorded), every)
    known = {(*(row[right] for _, right, _ in join.on), row["_event_time"]) for row in records}
    lefts = (row for row in list_side_rows(con, join.left, tables) if row["_event_time"] in interval)
    return sum((*(row[left] for left, _, _ in join.on), row["_event_time"]) not in known for row in lefts)


def is_pair(join: CompiledJoin, left: Record, right: Record) -> bool:
    """Return whether two rows have equal keys and are near each other."""
    for one, other, safe in join.on:
        if left[one] != right[other] or (left[one] is None and not safe):
            return False
    if join.same:
        size, offset = join.same
        one, other = ((row["_event_time"] - EPOCH) // MICROSECOND - offset for row in (left, right))
        if one // size != other // size:
            return False
    away: int = (right["_event_time"] - left["_event_time"]) // MICROSECOND
    return join.lower <= away <= join.upper


def keep_true(
    con: duckdb.DuckDBPyConnection, join: CompiledJoin, pairs: list[tuple[Record, Record]]
) -> list[tuple[Record, Record]]:
    """Keep the pairs for which the join's condition is true."""
    if join.where is None or not pairs:
        return pairs
    table = pa.Table.from_pylist(
        [describe_row(join, PAIR, 0, left, right) for left, right in pairs], derived_schema(join)
    )
    kept = query_rows(con, f"SELECT ({join.where.duckdb}) IS TRUE FROM rows", table)
    return [pair for pair, (true,) in zip(pairs, kept, strict=True) if true]


def derived_schema(join: CompiledJoin) -> pa.Schema:
    """Return the columns of derived rows."""
    places = [COORDINATES.field(name) for name in (*PLACE, "_epoch")]
    own = [pa.field(each.name, arrow_type(each.type.spark)) for each in join.schema.fields]
    return pa.schema([*places, pa.field("_event_time", INSTANT), *own])


def describe_row(join: CompiledJoin, kind: str, epoch: int, left: Record, right: Record | None) -> Record:
    """Return a derived row."""

    def values(side: JoinSide, row: Record | None) -> Record:
        return {side.named(each.name): row and row[each.name] for each in side.columns}

    return {
        KIND: kind,
        "_epoch": epoch,
        "_event_time": left["_event_time"],
        **{name: left[name] for name in PLACE},
        **values(join.left, left),
        **values(join.right, right),
    }
