"""Which of the rows that were validated again repeat an event id: they are flagged, as the stream flags rows.

A join counts what is not flagged, in both layers, and no build of its views removes anything more.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from seamline.kernel.marks import PLACE
from seamline.kernel.validation import REPEATED
from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.lake.storage.data_files import DataFile
from seamline.lake.store.locations import Location
from seamline.lake.tables.reprocessed import REASON
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.record_rules import SELECTED
from seamline.model.protocol.epoch import Epoch
from seamline.spark.build.joined_copies import cell_of
from seamline.spark.tasks.measures import quote_column

FRESH = "_fresh"


def are_copies_flagged(pipeline: CompiledPipeline) -> bool:
    """Return whether rows that are validated again are flagged: their sources can be joined, and have event ids."""
    return pipeline.record.dedup and bool(pipeline.record.sources)


def find_repeated_records(
    pipeline: CompiledPipeline,
    root: Location,
    written: Sequence[DataFile],
    known: DataFrame,
    block: Sequence[Epoch],
) -> pa.Table:
    """Find the places of rows that repeat the id of an earlier row of their interval, as marks for the kernel.

    The rows are those of a block of epochs in the files just ``written``; an earlier one is among them, or ``known``.
    """
    found = PLACE.empty_table()
    fresh = read_selected_rows(known.sparkSession, pipeline, root, written)
    if fresh is not None:
        found = find_later_rows(pipeline, fresh, known, [each.number for each in block])
    return found.append_column(REPEATED, pa.repeat(pa.scalar(True), found.num_rows))


def read_selected_rows(
    spark: SparkSession, pipeline: CompiledPipeline, root: Location, written: Sequence[DataFile]
) -> DataFrame | None:
    """Read the rows of files that are selected; None without files."""
    if not written:
        return None
    rows = spark.read.parquet(*(str(root / each.path) for each in written))
    return rows.where(f.col(REASON).isNull() & f.col(SELECTED)).select(*list_columns(pipeline))


def list_columns(pipeline: CompiledPipeline) -> list[str]:
    """List the columns by which copies are known."""
    return [*dict.fromkeys([*pipeline.event_id, SELECTED, "_event_time", *READ_ORDER, *PLACE.names])]


def find_later_rows(
    pipeline: CompiledPipeline, fresh: DataFrame, known: DataFrame, numbers: Sequence[int]
) -> pa.Table:
    """Return the places of fresh rows that have an earlier row beside them."""
    bounds = fresh.agg(f.min("_event_time").alias("first"), f.max("_event_time").alias("last")).toArrow()
    first, last = bounds["first"][0].as_py(), bounds["last"][0].as_py()
    if first is None:
        return PLACE.empty_table()
    both, columns = fresh.withColumn(FRESH, f.lit(True)), list_columns(pipeline)
    # A master that no stream of this record version has written to lacks its columns, and has no rows of it.
    if set(columns) <= set(known.columns):
        moment = f.col("_event_time")
        span = (moment >= pipeline.grid.of(first).start) & (moment < pipeline.grid.of(last).end)
        before = (f.col("_epoch") < max(numbers)) & ~f.col("_epoch").isin(*numbers)
        older = known.where(before & span & f.col(SELECTED)).select(*columns)
        both = both.unionByName(older.withColumn(FRESH, f.lit(False)))
    ids = [f.expr(each) for each in list_id_expressions(pipeline, quote_column)]
    order = Window.partitionBy(cell_of(pipeline.grid), *ids).orderBy(*READ_ORDER)
    later = both.withColumn("_number", f.row_number().over(order)).where(
        f.col(FRESH) & (f.col("_number") > 1)
    )
    return later.select(*PLACE.names).toArrow().cast(PLACE)
