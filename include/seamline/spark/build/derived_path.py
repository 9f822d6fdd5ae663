"""The rows of joins in a build: of whole intervals, from all rows in reach up to the cut, joined by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.kernel.joined_rows import list_joins
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.generations import Volume
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import EPOCH, Grid, Interval, merge_intervals
from seamline.plan.batch.reached_intervals import widen_to_intervals
from seamline.plan.batch.work_shares import Counts
from seamline.spark.build.general_path import (
    CELL,
    MICROSECOND,
    in_spans_condition,
    log_rows,
    write_interval_states,
)
from seamline.spark.tasks.derived_rows import derive_rows

ByInterval = dict[str, Counts]


def build_derived_states(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, job: BuildJob, attempt: str
) -> tuple[dict[str, ByInterval], dict[str, dict[str, Volume]]]:
    """Write and commit the states of every view of a join; return by view what was read, and what was written.

    What is read of an interval are the rows of all intervals in its reach; ``exploded`` is how many more derived rows
    they make, or below zero how many fewer.
    """
    counts: dict[str, ByInterval] = {}
    volumes: dict[str, dict[str, Volume]] = {}
    for id, join in list_joins(pipeline.views).items():
        views = [view for view in pipeline.views if view.join and view.join.id == id]
        grid = pipeline.grid
        spans = merge_intervals(widen_to_intervals(grid, span, views[0]) for span in job.spans)
        rows = log_rows(spark, pipeline, layout, BuildJob(job.pipeline, job.run, job.cut, tuple(spans)))
        read = count_by_cell(rows.withColumn(CELL, cell_of(grid)), [])[0]
        derived = derive_rows(rows, join).where(in_spans_condition(job.spans)).withColumn(CELL, cell_of(grid))
        derived = derived.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            made, left = count_by_cell(derived, views)
            for view in views:
                counts[view.id] = {
                    interval.id: count_interval(view, interval, grid, read, made, left[view.id])
                    for span in job.spans
                    for interval in grid.within(span)
                }
                volumes[view.id] = write_interval_states(derived, view, pipeline, layout, attempt)
        finally:
            derived.unpersist()
    return counts, volumes


def cell_of(grid: Grid) -> Column:
    """Return the start of a row's interval, in microseconds."""
    moment, length = f.unix_micros(f.col("_event_time")), f.lit(grid.length // MICROSECOND)
    return moment - f.pmod(moment, length)


def count_by_cell(
    rows: DataFrame, views: Sequence[CompiledView]
) -> tuple[Mapping[int, int], Mapping[str, Mapping[int, int]]]:
    """Count rows by interval, and those that each view does not select."""
    left = [f.count_if(~f.coalesce(f.expr(view.where.spark), f.lit(False))) for view in views if view.where]
    names = [view.id for view in views if view.where]
    table = rows.groupBy(CELL).agg(f.count(f.lit(1)), *left).toArrow()
    cells, counted, *others = (column.to_pylist() for column in table.columns)
    not_selected: dict[str, Mapping[int, int]] = {view.id: {} for view in views}
    not_selected |= {
        name: dict(zip(cells, each, strict=True)) for name, each in zip(names, others, strict=True)
    }
    return dict(zip(cells, counted, strict=True)), not_selected


def count_interval(
    view: CompiledView,
    interval: Interval,
    grid: Grid,
    read: Mapping[int, int],
    made: Mapping[int, int],
    left: Mapping[int, int],
) -> Counts:
    """Return what was read of the intervals in reach of one, and what it made."""
    cell = (interval.start - EPOCH) // MICROSECOND
    reached = widen_to_intervals(grid, interval, view)
    rows = sum(read.get((each.start - EPOCH) // MICROSECOND, 0) for each in grid.within(reached))
    derived = made.get(cell, 0)
    return Counts(rows, 0, {view.id: left.get(cell, 0)}, {view.id: derived - rows})
