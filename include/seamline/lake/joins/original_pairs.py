"""The derived rows behind one number: pairs with the places of both rows, left rows, and matched ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.joined_rows import logged_rows
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.intervals import Interval
from seamline.model.time.reached_intervals import widen_by_reach


def read_derived_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    sought: pa.Table,
    key: Mapping[str, Any],
    window: Interval,
    interval: Interval,
    until: int,
    judge: Judge | None = None,
) -> pa.Table:
    """Read the derived rows of a key and window in one interval up to an epoch; ``sought`` has the key's values.

    None is a duplicate: a row that repeats an event id is not joined. Rows are as ``judge`` has them.
    """
    assert view.join
    wide = widen_by_reach(pipeline.grid, interval, view)
    times = (to_unix_micros(wide.start), to_unix_micros(wide.end))
    only = write_key_conditions(view.join, key, [window, interval])
    same = (f"rows.{name} IS NOT DISTINCT FROM sought.{name}" for name in map(quote_identifier, key))
    matches = " AND ".join(same) or "true"
    chosen = view.where.duckdb if view.where else "true"
    with (
        register_tables(sought=sought) as con,
        logged_rows(con, view.join, pipeline, layout, [times], until, judge) as logged,
    ):
        rows = derived_rows_sql(view.join, logged, DUCKDB, only=only)
        return con.sql(
            f"SELECT rows.*, FALSE AS _spare FROM (SELECT * FROM ({rows}) WHERE {chosen}) rows, sought WHERE {matches}"
        ).to_arrow_table()


def write_key_conditions(
    join: CompiledJoin, key: Iterable[str], spans: Iterable[Interval]
) -> tuple[str, str]:
    """Write which left and right rows those of a key are made of; a derived row has the time of its left one.

    Else whole intervals were joined for one number.
    """
    conditions: tuple[list[str], list[str]] = ([], [])
    for span in spans:
        first, end = (f"make_timestamptz({to_unix_micros(at)})" for at in (span.start, span.end))
        conditions[0].append(f"_event_time >= {first} AND _event_time < {end}")
    for name in key:
        if join.latest and name not in {each.name for each in join.left.fields}:
            # What a version is, is known once it is chosen, and a left row without any has NULL there.
            continue
        wanted = f"IS NOT DISTINCT FROM (SELECT {quote_identifier(name)} FROM sought)"
        for number, column in find_key_columns(join, name):
            conditions[number].append(f"{quote_identifier(column)} {wanted}")
    return " AND ".join(conditions[0]), " AND ".join(conditions[1]) or "true"


def find_key_columns(join: CompiledJoin, name: str) -> list[tuple[int, str]]:
    """Find the columns of the left side (0) and of the right one (1) that a column of pairs speaks of."""
    [own] = [
        (number, each.name)
        for number, side in enumerate(join.sides)
        for each in side.columns
        if side.named(each.name) == name
    ]
    for left, right, _ in join.on:
        both = [(0, left), (1, right)]
        if own in both:
            return both
    return [own]
