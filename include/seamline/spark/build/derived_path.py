"""Derived rows in a build: of whole intervals, from all rows in reach up to the cut.

Those of joins by slices of time, which tasks join in DuckDB; where files are not in order of time, or rows in reach
were restated, by Spark's own join. Those of processes by a fold of the rows of each key, which Spark brings together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.kernel.joined_rows import list_derived
from seamline.lake.joins.span_rows import find_mark, micros_of_mark
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.generations import Generations, Volume
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.changes.compiled_changelog import SIGN, CompiledChangelog
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import EPOCH, Grid, Interval, merge_intervals
from seamline.model.time.reached_intervals import widen_to_intervals
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.join_slices import Slice, plan_slices
from seamline.plan.batch.work_shares import Counts
from seamline.spark.build.changed_path import find_contributions
from seamline.spark.build.fast_path import gather_reports, most_reported, write_gathered_states
from seamline.spark.build.general_path import (
    CELL,
    in_spans_condition,
    list_meant_restatements,
    log_rows,
    reprocess_restated_rows,
    require_sound,
    write_interval_states,
)
from seamline.spark.build.joined_copies import Copies, cell_of, count_joined_copies
from seamline.spark.build.joined_slices import JoinedSlices, list_timed_files
from seamline.spark.build.partial_states import name_cell
from seamline.spark.build.unanswered_rows import count_unanswered_rows
from seamline.spark.tasks.derived_rows import derive_rows
from seamline.spark.tasks.folded_rows import fold_rows
from seamline.spark.tasks.spread import count_task_slots

ByInterval = Mapping[str, Counts]


@dataclass(frozen=True)
class Found:
    """What was read and written of views of derived rows; each by the view's id, then the interval's."""

    counts: dict[str, dict[str, Counts]] = field(default_factory=dict)
    """What was read: the rows of all intervals in reach; ``exploded`` is how many more derived rows they make."""
    copies: dict[str, dict[str, Copies]] = field(default_factory=dict)
    """Copies in reach."""
    unanswered: dict[str, dict[str, int]] = field(default_factory=dict)
    """Rows that wait for an answer."""
    volumes: dict[str, dict[str, Volume]] = field(default_factory=dict)
    """What was written."""


def build_derived_states(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    decisions: Sequence[Restatement],
    attempt: str,
) -> Found:
    """Write and commit the states of every view of derived rows, of rows as the decisions of the cut have them."""
    found, grid = Found(), pipeline.grid
    asked = [interval for span in job.spans for interval in grid.within(span)]
    for id, derived in list_derived(pipeline.views).items():
        views = tuple(view for view in pipeline.views if view.derived and view.derived.id == id)
        own = replace(pipeline, views=views)
        spans = merge_intervals(widen_to_intervals(grid, span, views[0]) for span in job.spans)
        wide = BuildJob(job.pipeline, job.run, job.cut, tuple(spans))
        restated = list_meant_restatements(decisions, wide.spans, derived)
        slices = None
        if isinstance(derived, CompiledJoin) and not restated:
            slices = find_slices(spark, own, layout, job, wide.spans)
        if isinstance(derived, CompiledJoin) and slices is not None:
            counted, wrote = build_by_slices(spark, own, layout, job, derived, slices, attempt)
        else:
            rows = log_rows(spark, own, layout, wide)
            rows = reprocess_restated_rows(rows, own, layout, decisions, wide.spans, derived)
            counted, wrote = build_by_shuffle(rows, own, layout, job, derived, attempt)
        found.volumes.update(wrote)
        copies: Mapping[int, Copies] = {}
        if pipeline.event_id:
            copies = count_joined_copies(log_rows(spark, pipeline, layout, wide), pipeline, derived)
        waiting: Mapping[int, int] = {}
        if isinstance(derived, CompiledJoin) and derived.question:
            waiting = count_unanswered_rows(log_rows(spark, pipeline, layout, wide), layout, derived, grid)
        for view in views:
            found.unanswered[view.id] = {each.id: waiting.get(micros_of(each), 0) for each in asked}
            found.counts[view.id] = {each.id: count_interval(view, each, grid, counted) for each in asked}
            found.copies[view.id] = {each.id: copies.get(micros_of(each), Copies()) for each in asked}
    return found


def find_slices(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, job: BuildJob, wide: Sequence[Interval]
) -> list[Slice] | None:
    """Part a build by time; None where its files do not say times, or are not in order of it."""
    own = list_timed_files(Files.of(Master.open(layout).table), job.cut, again=False)
    again = list_timed_files(Reprocessed(pipeline, layout).files(), job.cut, again=True)
    if own is None or again is None:
        return None
    spans = merge_intervals(job.spans)
    return plan_slices([*own, *again], spans, wide, pipeline.views[0], count_task_slots(spark))


def build_by_slices(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    join: CompiledJoin,
    slices: Sequence[Slice],
    attempt: str,
) -> tuple[ByInterval, dict[str, dict[str, Volume]]]:
    """Join slices of time in tasks; return what was counted by interval, and what was written.

    ``exploded`` has how many rows were made for a view.
    """
    tables = {view.id: Generations.ensure(layout, view) for view in pipeline.views}
    folders = {id: generations.folder(attempt) for id, generations in tables.items()}
    task = JoinedSlices(pipeline, join, tuple(slices), job.cut, folders, most_reported(len(slices)))
    found = gather_reports(spark, task, len(slices), pipeline)
    slots = count_task_slots(spark)
    return found.counts, write_gathered_states(spark, pipeline, tables, found, attempt, slots)


def build_by_shuffle(
    rows: DataFrame,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    derived: Derived,
    attempt: str,
) -> tuple[ByInterval, dict[str, dict[str, Volume]]]:
    """Let Spark join, or fold, by its own shuffle; ``rows`` are those of all intervals in reach."""
    grid = pipeline.grid
    require_sound(rows)
    read = count_by_cell(rows.withColumn(CELL, cell_of(grid)), [])[0]
    made, left, volumes = {}, {}, {}
    for views, own in derive_by_views(rows, pipeline, layout, job, derived):
        kept = own.where(in_spans_condition(job.spans)).withColumn(CELL, cell_of(grid))
        kept = kept.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            counted, not_selected = count_by_cell(kept, views)
            for view in views:
                made[view.id], left[view.id] = counted, not_selected[view.id]
                volumes[view.id] = write_interval_states(kept, view, pipeline, layout, attempt)
        finally:
            kept.unpersist()
    found = {
        name_cell(cell): Counts(
            read.get(cell, 0),
            0,
            {id: each.get(cell, 0) for id, each in left.items()},
            {id: each.get(cell, 0) for id, each in made.items()},
        )
        for cell in {*read, *chain(*made.values())}
    }
    return found, volumes


def derive_by_views(
    rows: DataFrame, pipeline: CompiledPipeline, layout: Layout, job: BuildJob, derived: Derived
) -> Iterator[tuple[Sequence[CompiledView], DataFrame]]:
    """Derive rows, and say which views count them: all those of a join, those of one side of a process."""
    if isinstance(derived, CompiledJoin):
        yield pipeline.views, derive_rows(rows, derived)
        return
    if isinstance(derived, CompiledChangelog):
        wanted = in_spans_condition(job.spans)
        yield (
            pipeline.views,
            find_contributions(rows.sparkSession, pipeline, layout, derived, wanted, job.cut),
        )
        return
    mark = micros_of_mark(find_mark(pipeline, layout, job.cut))
    memory = pipeline.definition.stream.worker_memory
    for side in dict.fromkeys(view.side for view in pipeline.views):
        views = [view for view in pipeline.views if view.side == side]
        yield views, fold_rows(rows, derived, mark, side=side, memory=memory)


def micros_of(interval: Interval) -> int:
    """Return an interval's start in microseconds from 1970."""
    return (interval.start - EPOCH) // MICROSECOND


def count_by_cell(
    rows: DataFrame, views: Sequence[CompiledView]
) -> tuple[Mapping[int, int], Mapping[str, Mapping[int, int]]]:
    """Count rows by interval, and those that each view does not select; a row that is taken away counts as -1."""
    sign = f.col(SIGN).cast("BIGINT") if SIGN in rows.columns else f.lit(1)
    left = [
        f.coalesce(f.sum(f.when(~f.coalesce(f.expr(view.where.spark), f.lit(False)), sign)), f.lit(0))
        for view in views
        if view.where
    ]
    names = [view.id for view in views if view.where]
    table = rows.groupBy(CELL).agg(f.sum(sign), *left).toArrow()
    cells, counted, *others = (column.to_pylist() for column in table.columns)
    not_selected: dict[str, Mapping[int, int]] = {view.id: {} for view in views}
    not_selected |= {
        name: dict(zip(cells, each, strict=True)) for name, each in zip(names, others, strict=True)
    }
    return dict(zip(cells, counted, strict=True)), not_selected


def count_interval(view: CompiledView, interval: Interval, grid: Grid, found: ByInterval) -> Counts:
    """Return what was read of the intervals in reach of one, and by how many rows what it made is more.

    ``found`` has in ``exploded`` how many were made.
    """
    reached = grid.within(widen_to_intervals(grid, interval, view))
    rows = sum(found[each.id].read for each in reached if each.id in found)
    own = found.get(interval.id, Counts(0, 0, {}, {}))
    return Counts(
        rows, 0, {view.id: own.not_selected.get(view.id, 0)}, {view.id: own.exploded.get(view.id, 0) - rows}
    )
