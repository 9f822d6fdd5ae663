"""Answers as they were at each age of their window beside the final ones, made again from the master's records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import record_version_sql
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.log.log_files import files_of
from seamline.lake.read.side_by_side import list_state_place_names
from seamline.lake.storage.arrow_types import INSTANT, master_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.committed_log import CommittedLog, committed_epochs_sql
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.accuracy import AGES, Accuracy
from seamline.model.time.intervals import Interval
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.time.zone_clock import MICROSECOND

EPOCH = "_epoch"


def measure_answer_accuracy(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    span: Interval,
    ages: Sequence[timedelta] = AGES,
) -> list[Accuracy]:
    """Compute for each measure how far answers of an age were from the final ones, over the panes of a span.

    What was answered at an age is what the epochs committed by then make, as the speed layer counts; their instants
    are the ledger's. Records of another record version are left out. Sessions, count windows and derived rows
    have no age: an empty list. Raises NotFound if the stream never ran.
    """
    if view.counts or view.derived or isinstance(view.windows, Gaps):
        return []
    log = CommittedLog.pin(pipeline, layout, span)
    paths = files_of(log.master, span, log.epoch)
    if not paths:
        return []
    rows = (
        f"(SELECT * FROM (SELECT * FROM {read_parquet_sql(paths, uneven=True)} UNION ALL BY NAME SELECT * FROM blank) "
        f"WHERE {record_version_sql(pipeline.record_version)} AND {committed_epochs_sql('_epoch', log.epochs)} "
        f"AND epoch_us(_event_time) >= {to_unix_micros(span.start)} "
        f"AND epoch_us(_event_time) < {to_unix_micros(span.end)})"
    )
    with register_tables(blank=master_schema(pipeline).empty_table()) as con:
        pieces = states.compute_row_states(con, view, rows, by=[EPOCH])
    if not pieces.num_rows:
        return []
    aged = ages_of(pieces, log, view)
    final = present_pieces(view, pieces)
    return [
        each
        for age in ages
        for each in compare_answers(
            view, present_pieces(view, pieces.filter(pc.less_equal(aged, age // MICROSECOND))), final, age
        )
    ]


def last_intervals(pipeline: CompiledPipeline, layout: Layout, count: int = 7) -> Interval | None:
    """Return the span of the last intervals that have rows; None if there is none."""
    ids = sorted({id for epoch in read_condensed_log(layout) for id in epoch.accepted})[-count:]
    if not ids:
        return None
    return Interval(pipeline.grid.named(ids[0]).start, pipeline.grid.named(ids[-1]).end)


def ages_of(pieces: pa.Table, log: CommittedLog, view: CompiledView) -> pa.Array:
    """Return how old, in microseconds, each piece's pane was when its epoch was committed."""
    held = {epoch.number: to_unix_micros(epoch.committed_at) for epoch in log.epochs}
    instants = pa.array([held[number] for number in pieces[EPOCH].to_pylist()], pa.int64())
    ends = pc.add(pieces["pane"].cast(INSTANT).cast(pa.int64()), view.pane // MICROSECOND)
    return pc.subtract(instants, ends)


def present_pieces(view: CompiledView, pieces: pa.Table) -> pa.Table:
    """Merge pieces by key and pane, and present them."""
    return states.present_states(view, states.combine_states(view, [pieces]), list_state_place_names(view))


def compare_answers(view: CompiledView, early: pa.Table, final: pa.Table, age: timedelta) -> list[Accuracy]:
    """Compare what was answered at an age with the final answers, measure by measure."""
    names = [measure.name for measure in view.measures]
    places = list_state_place_names(view)
    on = " AND ".join(
        f"e.{states.quote_identifier(name)} IS NOT DISTINCT FROM f.{states.quote_identifier(name)}"
        for name in places
    )
    columns = ", ".join(
        f"{answer_change_sql(early.schema.field(name).type, quoted)} AS {quoted}"
        for name, quoted in ((name, states.quote_identifier(name)) for name in names)
    )
    with register_tables(early=early, final=final) as con:
        found = con.sql(f"SELECT {columns or '1 AS _'} FROM early e JOIN final f ON {on}").to_arrow_table()
    there = found.num_rows / final.num_rows
    result = []
    for name in names:
        shares = found[name].drop_null().to_numpy()
        shares = shares[np.isfinite(shares)]
        typical = float(np.median(shares)) if len(shares) else None
        most = float(max(np.quantile(shares, [0.1, 0.9]), key=abs)) if len(shares) else None
        result.append(Accuracy(name, age, final.num_rows, there, typical, most))
    return result


def answer_change_sql(type: pa.DataType, name: str) -> str:
    """Write what came later as a share of what was answered; NULL for what is no number."""
    if not (pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)):
        return "NULL::DOUBLE"
    early, final = f"e.{name}::DOUBLE", f"f.{name}::DOUBLE"
    return (
        f"CASE WHEN {early} = {final} THEN 0 ELSE ({final} - {early}) / nullif(abs({early}), 0) END::DOUBLE"
    )
