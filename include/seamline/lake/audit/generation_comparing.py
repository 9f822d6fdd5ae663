"""A generation beside what was answered before it, to the same cut: what changes, by key and pane, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.audit.measure_changes import summarize_measure_changes
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import connection, register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.lake.joins.joined_rows import list_log_files
from seamline.lake.log.pinned_log import log_of
from seamline.lake.read.side_by_side import (
    INTERVAL,
    difference_evidence_sql,
    list_state_place_names,
    side_by_side_sql,
)
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.builds_table import BuildRow
from seamline.lake.tables.committed_log import find_uncrossed_epoch, live_slices_sql
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import Reprocessed, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.comparison import Comparison
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restated_views import list_view_restatements
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.model.time.reached_intervals import widen_by_reach, widen_to_intervals
from seamline.plan.batch.attribution import (
    ChangeCause,
    DifferingPlace,
    KnownChanges,
    count_causes,
    find_difference_causes,
)


@dataclass(frozen=True)
class Mark:
    """An interval of a run, and what answered it before."""

    row: BuildRow
    """What the run built."""
    before: int
    """The last epoch that the former generation counts; -1 for none."""
    until: int
    """The last epoch whose slices answered above it."""
    known: KnownChanges
    """Changes that explain a difference."""


def compare_generations(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    rows: Sequence[BuildRow],
    epochs: Sequence[Epoch],
) -> list[Comparison]:
    """Compare what a run built of one view with what was answered before, each interval to its cut.

    Before it there was the generation that was published when the run began, and slices above its cut, of ``epochs``
    that the master contains. Intervals that had no answer are left out, and so are views with count windows,
    of which the two layers do not add up.
    """
    if view.counts:
        return []
    log = read_cached_table(layout.table("master"), ("log", view.id), lambda table: log_of(table, view))
    slices, generations = (
        read_cached_table(root, "files", Files.of) for root in (layout.slices(view), layout.generations(view))
    )
    if log is None or slices is None or generations is None:
        return []
    until = find_uncrossed_epoch(connection(), slices, min(log.epoch, log.frontier))
    manifest = manifest_of(layout)
    marks = [*list_comparison_marks(pipeline, view, layout, manifest, rows, until)]
    if not marks:
        return []
    with register_tables(
        marks=marks_table(marks),
        blank=rows_schema(pipeline).empty_table(),
    ) as con:
        former = present_interval_states(
            view, merge_former_answers(con, pipeline, view, slices, generations, live_slices_sql(epochs))
        )
        new = present_interval_states(view, read_built_states(con, pipeline, view, generations))
        with register_tables(before=former, after=new):
            places = con.sql(side_by_side_sql(view)).to_arrow_table()
        differing = places.filter(pc.is_valid(places["_kind"]))
        with register_tables(differing=differing):
            found = (
                con.sql(
                    difference_evidence_sql(pipeline, view, list_record_files(pipeline, view, layout, marks))
                ).to_arrow_table()
                if differing.num_rows
                else differing
            )
    totals = Counter(places[INTERVAL].to_pylist())
    by_interval: dict[datetime, list[dict[str, Any]]] = {}
    for each in found.to_pylist():
        by_interval.setdefault(each[INTERVAL], []).append(each)
    return [
        summarize_comparison(view, mark, totals[start], by_interval.get(start, []))
        for mark in marks
        for start in [parse_moment(mark.row.interval)]
    ]


def list_record_files(
    pipeline: CompiledPipeline, view: CompiledView, layout: Layout, marks: Sequence[Mark]
) -> list[str]:
    """List the files of the master, and of what was validated again; of a join those of rows in reach alone."""
    if view.join:
        spans = [
            widen_by_reach(pipeline.grid, pipeline.grid.named(mark.row.interval), view) for mark in marks
        ]
        times = [(to_unix_micros(span.start), to_unix_micros(span.end)) for span in spans]
        own, again = list_log_files(pipeline, layout, times, max(mark.row.cut for mark in marks))
        return [*own, *again]
    found = [
        read_cached_table(layout.table("master"), "files", Files.of),
        Reprocessed(pipeline, layout).files(),
    ]
    return [path for files in found if files for path in files.paths]


def list_comparison_marks(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    manifest: Manifest,
    rows: Iterable[BuildRow],
    until: int,
) -> Iterator[Mark]:
    """List up to where each interval was answered, and by what; those without an answer are left out."""
    decisions = list_restatements(layout)
    verdicts = Reprocessed(pipeline, layout).verdicts()
    for row in rows:
        known = manifest.history.get((view.id, row.interval), ())
        former = next((each for each in known if each.generation == row.expected), None)
        if former is None and manifest.floor(view.id, row.interval) > NOTHING:
            continue
        cut = former.epoch if former else NOTHING
        new = decisions[former.restated if former else 0 : row.restated]
        grid, interval = pipeline.grid, pipeline.grid.named(row.interval)
        ids = {each.id for each in grid.within(widen_to_intervals(grid, interval, view))}
        again = any(each.epoch > cut and not ids.isdisjoint(each.accepted) for each in verdicts.values())
        yield Mark(
            row,
            cut,
            min(until, row.cut),
            KnownChanges(
                bool(list_view_restatements(view, grid, interval, new)),
                again,
                behind=view.netted and max(until, cut) < row.cut,
            ),
        )


def marks_table(marks: Sequence[Mark]) -> pa.Table:
    """Return the marks as a table for SQL: epochs above ``_before`` and up to ``_until`` were answered by slices."""
    rows = [mark.row for mark in marks]
    return pa.table(
        {
            INTERVAL: pa.array([parse_moment(row.interval) for row in rows], INSTANT),
            "_id": pa.array([row.interval for row in rows]),
            "_former": pa.array([row.expected for row in rows]),
            "_generation": pa.array([row.generation for row in rows]),
            "_before": pa.array([mark.before for mark in marks], pa.int64()),
            "_until": pa.array([mark.until for mark in marks], pa.int64()),
            "_cut": pa.array([row.cut for row in rows], pa.int64()),
        }
    )


def merge_former_answers(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    slices: Files,
    generations: Files,
    held: str,
) -> pa.Table:
    """Merge what answered before: the former generations, and the slices above their cuts."""
    names = ", ".join(map(quote_identifier, partial_schema(view).names))
    parts = [of_generations(con, pipeline, view, generations, "_former")]
    if slices.actions.num_rows:
        interval = floor_sql("pane", pipeline.grid.length)
        rows = states.stored_states_sql(view, slices.paths)
        parts.append(
            con.sql(
                f"SELECT {INTERVAL}, {names} FROM {rows} JOIN marks ON {INTERVAL} = {interval} "
                f"WHERE from_epoch > _before AND to_epoch <= _until AND {held}"
            ).to_arrow_table()
        )
    return states.combine_states(view, parts, by=[INTERVAL])


def read_built_states(
    con: duckdb.DuckDBPyConnection, pipeline: CompiledPipeline, view: CompiledView, generations: Files
) -> pa.Table:
    """Read what the run has built."""
    return states.combine_states(
        view, [of_generations(con, pipeline, view, generations, "_generation")], by=[INTERVAL]
    )


def of_generations(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    generations: Files,
    named: str,
) -> pa.Table:
    """Read the generations that a column of the marks names."""
    schema = pa.schema([pa.field(INTERVAL, INSTANT), *partial_schema(view)])
    places = generations.partition("interval").to_pylist() if generations.actions.num_rows else []
    wanted = {id for (id,) in con.sql(f"SELECT _id FROM marks WHERE {named} <> ''").fetchall()}
    paths = [path for path, id in zip(generations.paths, places, strict=True) if id in wanted]
    if not paths:
        return schema.empty_table()
    names = ", ".join(map(quote_identifier, partial_schema(view).names))
    return con.sql(
        f"SELECT {INTERVAL}, {names} FROM {states.stored_states_sql(view, paths)} JOIN marks ON generation = {named} "
        f"AND {INTERVAL} = {floor_sql('pane', pipeline.grid.length)}"
    ).to_arrow_table()


def present_interval_states(view: CompiledView, found: pa.Table) -> pa.Table:
    """Present states pane by pane."""
    return states.present_states(view, found, [INTERVAL, *list_state_place_names(view), "rows"])


def summarize_comparison(
    view: CompiledView, mark: Mark, total: int, differing: Sequence[dict[str, Any]]
) -> Comparison:
    """Sum up an interval."""
    estimates = [
        measure.name for measure in view.measures if any(each.measure.approximate for each in measure.sources)
    ]
    why = [
        find_difference_causes(
            DifferingPlace(each["_was"], each["_made"], each["_spare"], each["_unsliced"], each["_measures"]),
            mark.known,
            estimates,
        )
        for each in differing
    ]
    kinds = [each["_kind"] for each in differing]
    alarms = [each for each, some in zip(differing, why, strict=True) if ChangeCause.NONE in some]
    row = mark.row
    return Comparison(
        view=view.id,
        interval=row.interval,
        generation=row.generation,
        cut=row.cut,
        former=row.expected,
        until=mark.until,
        at=datetime.now(UTC),
        equal=total - len(differing),
        changed=kinds.count("changed"),
        missing=kinds.count("missing"),
        extra=kinds.count("extra"),
        measures=summarize_measure_changes(view, differing),
        causes=count_causes(why),
        alarm=format_differing_place(view, alarms[0]) if alarms else "",
    )


def format_differing_place(view: CompiledView, each: dict[str, Any]) -> str:
    """Format a place and what is known of it."""
    where = ", ".join(
        [*(f"{key.name}={each[key.name]}" for key in view.keys), f"pane={format_utc_instant(each['pane'])}"]
    )
    return (
        f"{where}: {each['_was']} records before, {each['_made']} after, {each['_spare']} repeated, "
        f"{each['_unsliced']} not in slices; other {', '.join(each['_measures']) or 'rows'}"
    )
