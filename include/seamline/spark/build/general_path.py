"""The general path of a build: the master's rows read, marked and aggregated by Spark itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from seamline.kernel.restated_rows import HINT, TROUBLE, open_reprocessing
from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, list_places
from seamline.lake.tables.generations import Generations, Volume
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.compile.record_rules import SELECTED
from seamline.model.errors import NotRestatable
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import EPOCH, Interval
from seamline.plan.batch.work_shares import Counts
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.reprocessing import log_of
from seamline.spark.tasks.measures import compute_states, number_count_windows, quote_column
from seamline.spark.tasks.task import limit_task_memory

MICROSECOND = timedelta(microseconds=1)
CELL = "_cell"
SPARE = "_spare"


def build_states_general(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    job: BuildJob,
    decisions: Sequence[Restatement],
    attempt: str,
) -> tuple[dict[str, Counts], dict[str, dict[str, Volume]]]:
    """Write and commit the states of the intervals of every view; return what was read, and written."""
    rows = add_missing_columns(log_rows(spark, pipeline, layout, job), pipeline)
    rows = reprocess_restated_rows(rows, pipeline, layout, decisions, job.spans)
    rows = mark_duplicates(rows, pipeline)
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        require_sound(rows)
        found = count_read_rows(rows, pipeline)
        kept = rows.where(~f.col(SPARE))
        return found, {
            view.id: write_interval_states(kept, view, pipeline, layout, attempt) for view in pipeline.views
        }
    finally:
        rows.unpersist()


def log_rows(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, job: BuildJob) -> DataFrame:
    """Read the rows in ``job.spans`` up to the cut from one pinned version of the master that contains it.

    What another record version validated is read as it was reprocessed.
    """
    master = Master.open(layout)
    rows = log_of(spark, pipeline, layout, version=master.table.version)
    return rows.where(f.col("_epoch") <= job.cut).where(in_spans_condition(job.spans))


def in_spans_condition(spans: Sequence[Interval]) -> Column:
    """Return whether an event lies in one of the spans; the file statistics prune by the outer bounds too."""
    moment = f.col("_event_time")
    whole = (moment >= f.lit(min(span.start for span in spans))) & (moment < f.lit(max(s.end for s in spans)))
    each = f.lit(False)
    for span in spans:
        each = each | ((moment >= f.lit(span.start)) & (moment < f.lit(span.end)))
    return whole & each if len(spans) > 1 else whole


def add_missing_columns(rows: DataFrame, pipeline: CompiledPipeline) -> DataFrame:
    """Add the columns that no stream has read yet: they are NULL in all that was read before they were declared."""
    for field in pipeline.record.added:
        if field.name not in rows.columns:
            rows = rows.withColumn(field.name, f.lit(None).cast(field.type.spark))
    return rows


def reprocess_restated_rows(
    rows: DataFrame,
    pipeline: CompiledPipeline,
    layout: Layout,
    decisions: Sequence[Restatement],
    spans: Sequence[Interval],
    derived: Derived | None = None,
) -> DataFrame:
    """Validate the rows of some spans again that a restatement is about; the others are not touched by Python.

    For ``derived`` rows those of their look-ups alone count: no other changes them.
    """
    mine = list_meant_restatements(decisions, spans, derived)
    if not mine:
        return rows
    meant = f.lit(False)
    for each in mine:
        meant = meant | ((f.col("_epoch") <= each.epoch) & in_spans_condition([each.span]))
    judge = open_reprocessing(pipeline, layout, decisions)
    rows = rows.withColumn(TROUBLE, f.lit(None).cast("STRING"))
    task = limit_task_memory(judge.reprocess_batches, pipeline.definition.stream.worker_memory)
    return rows.where(~meant).unionByName(rows.where(meant).mapInArrow(task, rows.schema))


def list_meant_restatements(
    decisions: Sequence[Restatement], spans: Sequence[Interval], derived: Derived | None
) -> list[Restatement]:
    """List the decisions about rows of some spans, of what others are derived from if there is that."""
    return [
        each
        for each in decisions
        if (derived is None or each.lookup in derived.lookups)
        and any(each.span.overlaps(span) for span in spans)
    ]


def require_sound(rows: DataFrame) -> None:
    """Raise NotRestatable if there is a row that could not be validated again."""
    if TROUBLE in rows.columns:
        [(trouble,)] = rows.agg(f.min(TROUBLE)).collect()
        if trouble:
            raise NotRestatable(trouble, hint=HINT)


def mark_duplicates(rows: DataFrame, pipeline: CompiledPipeline) -> DataFrame:
    """Keep what states need, with the interval's start in microseconds and whether the row is a duplicate.

    Of the selected rows of one event id in one interval the first by (epoch, partition, offset, topic) counts.
    """
    moment, length = f.unix_micros(f.col("_event_time")), f.lit(pipeline.grid.length // MICROSECOND)
    columns = [quote_column(field.name) for field in (*pipeline.record.flags, *pipeline.schema.fields)]
    columns += [TROUBLE] if TROUBLE in rows.columns else []
    kept = rows.select(
        *columns, "_event_time", "_record_version", *READ_ORDER, (moment - f.pmod(moment, length)).alias(CELL)
    )
    event_id = [f.expr(each) for each in list_id_expressions(pipeline, quote_column)]
    if not event_id:
        return kept.withColumn(SPARE, f.lit(False))
    selected = f.col(SELECTED) if pipeline.record.selective else f.lit(True)
    first = Window.partitionBy(CELL, selected, *event_id).orderBy(*READ_ORDER)
    return kept.withColumn(SPARE, selected & (f.row_number().over(first) > 1))


def count_read_rows(rows: DataFrame, pipeline: CompiledPipeline) -> dict[str, Counts]:
    """Count what was read, per interval id."""
    left = {view.id: left_out(view, pipeline) for view in pipeline.views if view.where}
    more = {view.id: count_extra_rows(view, pipeline) for view in pipeline.views if view.explode}
    table = rows.groupBy(CELL).agg(
        f.count(f.lit(1)),
        f.count_if(f.col(SPARE)),
        *left.values(),
        *more.values(),
    )
    found = {}
    # By Arrow: see ``task.reported``.
    for cell, read, duplicates, *numbers in zip(
        *(each.to_pylist() for each in table.toArrow().columns), strict=True
    ):
        interval = pipeline.grid.of(EPOCH + cell * MICROSECOND)
        found[interval.id] = Counts(
            read,
            duplicates,
            dict(zip(left, numbers[: len(left)], strict=True)),
            dict(zip(more, numbers[len(left) :], strict=True)),
        )
    return found


def selected_rows_sql(pipeline: CompiledPipeline) -> Column:
    """Return which rows a view is made of at all."""
    return ~f.col(SPARE) & (f.col(SELECTED) if pipeline.record.selective else f.lit(True))


def left_out(view: CompiledView, pipeline: CompiledPipeline) -> Column:
    """Count the rows that a view does not select: records, and items of those that it takes."""
    assert view.where is not None
    if view.explode is None:
        return f.count_if(~f.col(SPARE) & ~f.coalesce(f.expr(view.where.spark), f.lit(False)))
    name, array = quote_column(view.explode.item.name), view.explode.array.spark
    refused = f.expr(f"size(filter({array}, {name} -> NOT coalesce({view.where.spark}, FALSE)))")
    records = f.count_if(~f.col(SPARE) & ~selected_rows_sql(pipeline))
    return records + f.coalesce(f.sum(f.when(selected_rows_sql(pipeline), refused)), f.lit(0))


def count_extra_rows(view: CompiledView, pipeline: CompiledPipeline) -> Column:
    """Count how many more rows than records an exploding view has."""
    assert view.explode is not None
    items = f.coalesce(f.expr(f"size({view.explode.array.spark})"), f.lit(0))
    return f.coalesce(f.sum(f.when(selected_rows_sql(pipeline), items - 1)), f.lit(0))


def write_interval_states(
    kept: DataFrame, view: CompiledView, pipeline: CompiledPipeline, layout: Layout, attempt: str
) -> dict[str, Volume]:
    """Write the states of all intervals as files, and commit them at once."""
    generations = Generations.ensure(layout, view)
    folder = generations.folder(attempt)
    spark = kept.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    if view.counts:
        kept = number_count_windows(kept, view, CELL)
    memory = pipeline.definition.stream.worker_memory
    rows = compute_states(kept, view, by=[CELL], memory=memory).withColumn("generation", f.lit(attempt))
    spread = rows.repartition(CELL)
    spread.write.partitionBy(CELL).option("compression", "zstd").parquet(str(folder))
    hit_failpoint("states")
    volumes = generations.append(list_state_files(folder, pipeline))
    hit_failpoint("generation")
    return volumes


def list_state_files(folder: Location, pipeline: CompiledPipeline) -> Iterator[tuple[Location, Interval]]:
    """List the files below a generation's folder with their intervals."""
    for path in list_places(folder, f"{CELL}=*/*.parquet"):
        yield path, pipeline.grid.of(EPOCH + int(path.parent.name.partition("=")[2]) * MICROSECOND)
