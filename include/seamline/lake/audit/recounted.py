"""Slices beside the records they were made of: every state that counts is made again, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.audit.latest_states import compute_latest_states
from seamline.lake.audit.recounted_changes import recount_changes
from seamline.lake.audit.refolded import refold_states, settle_zeros
from seamline.lake.audit.state_differences import BLOCK, find_state_differences, state_difference_sql
from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import record_version_sql
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.lake.joins.event_times import Times
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.joins.restated_rows import Judge, restated_rows
from seamline.lake.log.log_files import files_of
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.committed_log import (
    CommittedLog,
    committed_epochs_sql,
    find_uncrossed_epoch,
    live_slices_sql,
)
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import REASON, Reprocessed, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.protocol.audit import Finding, Wrong
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restated_views import count_named_restatements, find_restating_epochs
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import parse_moment
from seamline.model.time.reached_intervals import (
    find_spanning_views,
    list_filled_intervals,
    widen_by_reach,
)


@dataclass(frozen=True)
class Recount:
    """A view's slices, counted again up to an epoch."""

    view: str
    """The id of the version, ``name/fingerprint``."""
    until: int
    """The last epoch, inclusive."""
    states: int
    """How many states were compared."""
    findings: tuple[Finding, ...]
    """What is wrong with them; empty if nothing is."""


def recount_states(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    log: CommittedLog,
    judging: Callable[[Sequence[Restatement]], Judge] | None = None,
) -> Recount:
    """Compare every state above its interval's floor with what the records of its epochs make.

    The slices are pinned after the master and before the manifest (rule 11): what upkeep has taken away since lies
    below a floor. Count windows depend on what came before them: of those no state is made again, nor of a version
    that is not born yet. Of rows that may be withdrawn the sums above the floors are. Where derived rows were
    restated, which ``judging`` does by decisions, the slices that count begin with the epoch that names that: older
    ones were made before.
    """
    frontier = min(log.epoch, log.frontiers.get(view.id, NOTHING))
    slices = read_cached_table(layout.slices(view), "files", Files.of)
    manifest = manifest_of(layout)
    if view.id not in manifest.births:
        return Recount(view.id, frontier, 0, ())
    late = [*find_view_lag(view, log, frontier)]
    if view.counts:
        return Recount(view.id, frontier, 0, tuple(late))
    named = count_named_restatements(log.log, frontier) if view.derived else 0
    decisions = list_restatements(layout)[:named]
    judge = judging(decisions) if judging and decisions else None
    with register_tables(
        floors=list_interval_floors(manifest, view, log, decisions),
        blank=rows_schema(pipeline).empty_table(),
    ) as con:
        until = find_uncrossed_epoch(con, slices, frontier) if slices else frontier
        kept = read_merged_slices(con, view, slices, until, log)
        with register_tables(stated=kept):
            made = recompute_states(con, view, layout, log, until, manifest.births[view.id], judge)
            with register_tables(made=made):
                wrong = con.sql(state_difference_sql(view)).to_arrow_table()
    return Recount(view.id, until, kept.num_rows, (*late, *find_state_differences(view, wrong)))


def find_view_lag(view: CompiledView, log: CommittedLog, until: int) -> Iterable[Finding]:
    """Find out whether a view is behind the log."""
    if until < log.epoch:
        after = [epoch for epoch in log.epochs if epoch.number > until]
        rows = sum(epoch.rows for epoch in after)
        if rows:
            said = f"complete to epoch {until}, the log is at {log.epoch}: {rows} records are not counted yet"
            yield Finding(Wrong.BEHIND, f"view {view.id}", rows, said)


def list_interval_floors(
    manifest: Manifest, view: CompiledView, log: CommittedLog, decisions: Sequence[Restatement] = ()
) -> pa.Table:
    """List the floor of every interval that may have rows; where joined ones were restated, the epoch that says so."""
    grid, spanning = log.pipeline.grid, find_spanning_views(log.pipeline.grid, [view])
    # Of a span the epochs that are known are those that have rows in it, and not in what it is made of.
    epochs = log.log if spanning else log.epochs
    with_rows = {interval for epoch in epochs for interval in epoch.accepted}
    found = sorted(list_filled_intervals(grid, spanning.get(view.id), with_rows))
    ids = [id for id in found if log.span is None or parse_moment(id) in log.span]
    restated = find_restating_epochs(view, grid, ids, log.log, decisions)
    floors = {id: max(manifest.floor(view.id, id), restated.get(id, NOTHING)) for id in ids}
    return pa.table(
        {
            "_interval": pa.array([parse_moment(id) for id in ids], pa.timestamp("us", "UTC")),
            "_floor": pa.array([floors[id] for id in ids], pa.int64()),
        }
    )


def read_merged_slices(
    con: duckdb.DuckDBPyConnection,
    view: CompiledView,
    slices: Files | None,
    until: int,
    log: CommittedLog,
) -> pa.Table:
    """Read the slices that count, merged by block: ``_from``, ``_to`` and the states."""
    names = ", ".join(map(quote_identifier, partial_schema(view).names))
    if slices is None or not slices.actions.num_rows:
        numbers = [pa.field(name, pa.int64()) for name in BLOCK]
        return pa.schema([*numbers, *partial_schema(view)]).empty_table()
    if log.span is not None:
        slices = slices.keep(pc.less(slices.low("pane").cast(INSTANT), pa.scalar(log.span.end, INSTANT)))
        slices = slices.keep(
            pc.greater_equal(slices.high("pane").cast(INSTANT), pa.scalar(log.span.start, INSTANT))
        )
    if not (paths := slices.paths):
        return read_merged_slices(con, view, None, until, log)
    block = "from_epoch AS _from, to_epoch AS _to"
    if view.netted:
        block = f"_floor + 1 AS _from, {until}::BIGINT AS _to"
    rows = con.sql(
        f"SELECT {block}, {names} FROM {states.stored_states_sql(view, paths)} "
        f"JOIN floors ON _interval = {floor_sql('pane', log.pipeline.grid.length)} "
        f"WHERE from_epoch > _floor AND to_epoch <= {until} AND {live_slices_sql(log.log)}"
    ).to_arrow_table()
    merged = states.combine_states(view, [rows], by=BLOCK)
    return settle_zeros(view, merged) if view.netted else merged


def recompute_states(
    con: duckdb.DuckDBPyConnection,
    view: CompiledView,
    layout: Layout,
    log: CommittedLog,
    until: int,
    born: int,
    judge: Judge | None,
) -> pa.Table:
    """Make the states of the same blocks from the master; a record that is in none is a block of its own.

    What another definition has read since the view was ``born`` is in its slices as it was validated again.
    """
    pipeline = log.pipeline
    interval = floor_sql("_event_time", pipeline.grid.length)
    if view.derived is None:
        rows = counted_rows_sql(log, Reprocessed(pipeline, layout).files(), until, born, interval)
        return compute_placed_states(con, view, log, rows)
    if view.process:
        floors = con.sql("SELECT _interval, _floor FROM floors").fetchall()
        audited = {start: floor for start, floor in floors if log.span is None or start in log.span}
        return refold_states(pipeline, view, layout, audited, until, judge)
    if view.changelog:
        return recount_changes(con, view, layout, log, until)
    assert view.join
    times = find_reached_times(view, log)
    blank, logged = rows_schema(pipeline).empty_table(), log_rows_sql(pipeline, layout, [times], until)
    with restated_rows(con, view.join, blank, logged, [times], judge) as read:
        committed = f"(SELECT * FROM {read} WHERE {committed_epochs_sql('_epoch', log.log)})"
        if view.revised:
            return compute_latest_states(con, view, pipeline.grid, committed, until)
        rows = (
            f"SELECT r.*, f._interval FROM ({derived_rows_sql(view.join, committed, DUCKDB)}) r "
            f"JOIN floors f ON f._interval = {interval} WHERE _epoch > _floor"
        )
        return compute_placed_states(con, view, log, rows)


def find_reached_times(view: CompiledView, log: CommittedLog) -> Times:
    """Return the event times of the rows that the audited span of a view is made of."""
    if log.span is None:
        return None, None
    wide = widen_by_reach(log.pipeline.grid, log.span, view)
    return to_unix_micros(wide.start), to_unix_micros(wide.end)


def compute_placed_states(
    con: duckdb.DuckDBPyConnection, view: CompiledView, log: CommittedLog, rows: str
) -> pa.Table:
    """Compute the states of rows by the blocks that slices are stated in."""
    pipeline = log.pipeline
    pane = floor_sql("pane", pipeline.grid.length)
    blocks = f"SELECT DISTINCT {pane} AS _interval, _from, _to FROM stated"
    places = (
        f"SELECT p._interval, p._epoch, coalesce(b._from, p._epoch) AS _from, coalesce(b._to, p._epoch) AS _to "
        f"FROM (SELECT DISTINCT _interval, _epoch FROM ({rows})) p LEFT JOIN ({blocks}) b "
        f"ON b._interval = p._interval AND p._epoch BETWEEN b._from AND b._to"
    )
    placed = f"(SELECT r.*, p._from, p._to FROM ({rows}) r JOIN ({places}) p USING (_interval, _epoch))"
    return states.compute_row_states(con, view, placed, by=BLOCK)


def counted_rows_sql(log: CommittedLog, again: Files | None, until: int, born: int, interval: str) -> str:
    """Write the rows of committed epochs above the floors of their intervals; ``again`` are those validated again."""
    pipeline = log.pipeline
    paths = log.master.paths if log.span is None else files_of(log.master, log.span, until)
    parts = ["SELECT * FROM blank"]
    if paths:
        fitting = record_version_sql(pipeline.record_version)
        parts.append(f"SELECT * FROM {read_parquet_sql(paths, uneven=True)} WHERE {fitting}")
    if again and again.actions.num_rows:
        files = read_parquet_sql(again.paths, uneven=True)
        parts.append(f"SELECT * FROM {files} WHERE {REASON} IS NULL AND _epoch >= {born}")
    return (
        f"SELECT r.*, f._interval FROM ({' UNION ALL BY NAME '.join(parts)}) r JOIN floors f "
        f"ON f._interval = {interval} "
        f"WHERE _epoch > _floor AND _epoch <= {until} AND {committed_epochs_sql('_epoch', log.log)}"
    )
