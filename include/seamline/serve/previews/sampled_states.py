"""The states of one interval of a view as a build would make them, of rows that are given."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import repeated_id_sql
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import registered_in
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.event_times import within_sql
from seamline.lake.joins.folded_rows import fold_rows_of_keys, make_emitted_table
from seamline.lake.joins.span_rows import find_mark, micros_of_mark
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql, given_rows_sql
from seamline.model.time.intervals import Interval


def compute_interval_states(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    interval: Interval,
    cut: int,
    relation: str,
) -> pa.Table:
    """Compute a view's states of an interval; the relation has all rows up to the cut that they are made of.

    As in a build, of several rows with one event id the first counts.
    """
    if view.process:
        return fold_interval_states(con, pipeline, view, layout, interval, cut, relation)
    inside = within_sql((to_unix_micros(interval.start), to_unix_micros(interval.end)))
    if view.join:
        rows = f"(SELECT * FROM ({derived_rows_sql(view.join, relation, DUCKDB)}) WHERE {inside})"
        return states.compute_row_states(con, view, rows)
    spare = repeated_id_sql(pipeline)
    rows = f"(SELECT * EXCLUDE (_spare) FROM (SELECT *, {spare} AS _spare FROM {relation}) WHERE NOT _spare)"
    return states.compute_row_states(con, view, rows)


def fold_interval_states(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    interval: Interval,
    cut: int,
    relation: str,
) -> pa.Table:
    """Compute the states of what a process shows of an interval at the cut's watermark."""
    process = view.process
    assert process
    given = con.sql(given_rows_sql(process, relation, DUCKDB)).to_arrow_table()
    mark = micros_of_mark(find_mark(pipeline, layout, cut))
    shown = make_emitted_table(process, view.side, fold_rows_of_keys(process, given, mark))
    at = shown["_event_time"]
    inside = pc.and_(
        pc.greater_equal(at, pa.scalar(interval.start, INSTANT)),
        pc.less(at, pa.scalar(interval.end, INSTANT)),
    )
    with registered_in(con, {"emitted": shown.filter(inside)}):
        return states.compute_row_states(con, view, "emitted")
