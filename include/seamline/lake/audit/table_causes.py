"""Why an answer differs from a table that another job has made of the same topic.

What the answer would be without late records, without those that came after the table was written, or with copies is
made again of the log for the windows that differ: where it is what the table says, that is why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.audit.compared_tables import ComparedTable, find_difference
from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import record_version_sql, repeated_id_sql
from seamline.lake.engine.duckdb_connections import query_tables, register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.lake.log.log_files import files_of
from seamline.lake.read.row_differences import (
    BOTH,
    CHANGE,
    Difference,
    after_column,
    before_column,
    present_window_states,
)
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.storage.arrow_types import master_schema, partial_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.committed_log import CommittedLog, committed_epochs_sql
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.table_differences import TableCause, Variant, choose_causes, list_variants

FLAGS = {TableCause.LATE: "_late", TableCause.OVERDUE: "_overdue", TableCause.AFTER: "_after"}
COPY = "_copy"


def is_traced(view: CompiledView) -> bool:
    """Return whether a view's answer can be made again without some records: where windows are told by time alone."""
    return isinstance(view.windows, Ruling) and not (view.counts or view.derived)


@dataclass(frozen=True)
class CountedAnswer:
    """An answer, and what it was made of."""

    pipeline: CompiledPipeline
    """What the records are of."""
    view: CompiledView
    """The version that answered."""
    layout: Layout
    """Where the log is."""
    rows: pa.Table
    """What was answered."""
    epoch: int
    """The last epoch that it counts; where intervals differ, of that which counts most."""


def trace_causes(
    answer: CountedAnswer, table: ComparedTable, found: Difference, tolerance: float
) -> list[tuple[TableCause, ...]]:
    """Return why each row of a difference differs, of a table and the answer.

    Estimates prove nothing where there is a measure that is exact.
    """
    estimates = list_estimates(answer.view)
    measures = [name for name in found.measures if name not in estimates] or [*found.measures]
    pieces = read_flagged_states(answer, found, table.written_at)
    here: list[list[Variant]] = [[] for _ in range(found.rows.num_rows)]
    there: list[list[Variant]] = [[] for _ in here]
    left_out = [cause for cause, flag in FLAGS.items() if pc.any(pieces[flag]).as_py()]
    for variant in list_variants(left_out, copies=bool(pc.any(pieces[COPY]).as_py())):
        made = present_variant(answer.view, pieces, variant)
        sought = [(there, table.rows)] if variant.left_out else [(here, answer.rows), (there, table.rows)]
        for agreeing, side in sought:
            for some, equal in zip(
                agreeing, find_equal_rows(found, made, side, measures, tolerance), strict=True
            ):
                some.extend([variant] * equal)
    return [
        choose_causes(one, other, measures=list_differing(found, row), estimates=estimates)
        for one, other, row in zip(here, there, found.rows.to_pylist(), strict=True)
    ]


def read_flagged_states(answer: CountedAnswer, found: Difference, written_at: datetime) -> pa.Table:
    """Read the states of the windows that differ, apart by whether records were late, came after, or are copies."""
    pipeline, view = answer.pipeline, answer.view
    span = find_span(pipeline, view, found)
    log = CommittedLog.pin(pipeline, answer.layout, span)
    paths = files_of(log.master, span, answer.epoch)
    if not paths:
        flags = [pa.field(name, pa.bool_()) for name in (*FLAGS.values(), COPY)]
        return pa.schema([*flags, *partial_schema(view)]).empty_table()
    rows = (
        f"(SELECT *, {repeated_id_sql(pipeline, floor_sql('_event_time', pipeline.grid.length))} AS {COPY} FROM "
        f"(SELECT * FROM {read_parquet_sql(paths, uneven=True)} UNION ALL BY NAME SELECT * FROM blank) "
        f"WHERE {record_version_sql(pipeline.record_version)} AND {committed_epochs_sql('_epoch', log.epochs)} "
        f"AND _epoch <= {answer.epoch} "
        f"AND epoch_us(_event_time) >= {to_unix_micros(span.start)} "
        f"AND epoch_us(_event_time) < {to_unix_micros(span.end)})"
    )
    pane, written = floor_sql("_event_time", view.pane), to_unix_micros(written_at)
    with register_tables(blank=master_schema(pipeline).empty_table()) as con:
        touched = con.sql(f"SELECT DISTINCT _epoch, {pane} AS _pane FROM {rows}").to_arrow_table()
        with register_tables(flags=flag_panes(answer, log, touched, written_at)):
            # A record without a timestamp has one before 1970.
            sent = "CASE WHEN epoch_us(r._kafka_timestamp) >= 0 THEN epoch_us(r._kafka_timestamp) END"
            flagged = (
                f"(SELECT r.*, f._late, coalesce({sent} > f._over, false) AS _overdue, "
                f"coalesce({sent} > {written}, f._after) AS _after FROM {rows} r JOIN flags f "
                f"ON r._epoch = f._epoch AND {floor_sql('r._event_time', view.pane)} = f._pane)"
            )
            return states.compute_row_states(con, view, flagged, by=[*FLAGS.values(), COPY])


def find_span(pipeline: CompiledPipeline, view: CompiledView, found: Difference) -> Interval:
    """Return the event times of the windows that differ, to whole intervals, in which copies are looked for."""
    assert isinstance(view.windows, Ruling)
    bounds = pc.min_max(found.rows["window_start"]).as_py()
    last = bounds["max"] + (view.windows.size - 1) * MICROSECOND
    return Interval(pipeline.grid.of(bounds["min"]).start, pipeline.grid.of(last).end)


def flag_panes(answer: CountedAnswer, log: CommittedLog, touched: pa.Table, written_at: datetime) -> pa.Table:
    """Say of what an epoch brought to a pane whether it was late, and whether it came after an instant.

    ``_over`` is from when on a record that reaches Kafka is overdue there, in microseconds.
    """
    pipeline, view = answer.pipeline, answer.view
    edges = Snapshot.pin(pipeline, view, answer.layout, ReadRequest(version=view.fingerprint)).edges
    epochs = touched["_epoch"].to_pylist()
    marks = {epoch: edges.mark_before(epoch) for epoch in {*epochs}}
    after = {epoch.number for epoch in log.epochs if epoch.committed_at > written_at}
    ends = find_pane_ends(view, touched["_pane"])
    ahead = view.after // MICROSECOND
    late = [
        mark is not None and mark - ahead >= end
        for mark, end in zip((marks[epoch] for epoch in epochs), ends, strict=True)
    ]
    bound = max(source.watermark.bound for source in pipeline.definition.sources) // MICROSECOND
    return pa.table(
        {
            "_epoch": touched["_epoch"],
            "_pane": touched["_pane"],
            "_late": pa.array(late, pa.bool_()),
            "_after": pa.array([epoch in after for epoch in epochs], pa.bool_()),
            "_over": pa.array([end + bound for end in ends], pa.int64()),
        }
    )


def find_pane_ends(view: CompiledView, panes: pa.ChunkedArray) -> list[int]:
    """Find the end of the last window that each pane is in, in microseconds: what is late for it is so for all."""
    assert isinstance(view.windows, Ruling)
    ends = {
        at: max((end for _, end in view.windows.windows_at(at)), default=at)
        for at in pc.unique(panes).cast(pa.int64()).to_pylist()
    }
    return [ends[at] for at in panes.cast(pa.int64()).to_pylist()]


def present_variant(view: CompiledView, pieces: pa.Table, variant: Variant) -> pa.Table:
    """Present what the answer would be."""
    for cause in variant.left_out:
        pieces = pieces.filter(pc.invert(pieces[FLAGS[cause]]))
    if not variant.copies:
        pieces = pieces.filter(pc.invert(pieces[COPY]))
    return present_window_states(view, states.combine_states(view, [pieces]))


def find_equal_rows(
    found: Difference, one: pa.Table, other: pa.Table, measures: Sequence[str], tolerance: float
) -> list[bool]:
    """Return of each row of a difference whether two sides say the same there, or both have no such row."""
    names = [*found.places, *measures]
    unlike = find_difference(one.select(names), other.select(names), found.places, measures, tolerance).rows
    on = " AND ".join(
        f"f.{name} IS NOT DISTINCT FROM u.{name}" for name in map(quote_identifier, found.places)
    )
    places = found.rows.select([*found.places])
    told = query_tables(
        f"SELECT f._at, u._there IS NULL AS _same FROM found f LEFT JOIN (SELECT *, true AS _there FROM unlike) u "
        f"ON {on or 'true'} ORDER BY f._at",
        found=places.append_column("_at", pa.array(range(places.num_rows), pa.int64())),
        unlike=unlike,
    )
    same: list[bool] = told["_same"].to_pylist()
    return same


def list_estimates(view: CompiledView) -> list[str]:
    """List the measures that are not exact."""
    return [each.name for each in view.measures if any(source.measure.approximate for source in each.sources)]


def list_differing(found: Difference, row: Mapping[str, object]) -> list[str]:
    """List the measures that differ in a row that both sides have; none of another."""
    if row[CHANGE] != BOTH:
        return []
    return [name for name in found.measures if row[before_column(name)] != row[after_column(name)]]
