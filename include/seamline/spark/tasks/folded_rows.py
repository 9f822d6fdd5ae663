"""The rows that a process emits, in Spark: the rows of a key are brought together and sorted, and then folded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from seamline.lake.joins.folded_rows import ORDER, fold_sorted_rows
from seamline.lake.joins.span_rows import SPAN
from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import find_task_limit
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.definition.layers import Stream
from seamline.spark.tasks.measures import quote_column
from seamline.spark.tasks.task import limit_task_memory


def fold_rows(
    rows: DataFrame,
    process: CompiledProcess,
    mark: float,
    *,
    side: str = "",
    memory: str = Stream.worker_memory,
) -> DataFrame:
    """Return what a process emits on a side of some rows of the master, as a watermark shows it.

    The rows are all of whole spans. ``mark`` is in microseconds from 1970.
    """
    keys = [f.col(quote_column(key.name)) for key in process.keys]
    given = reduce(DataFrame.unionAll, (select_side_rows(rows, process, side) for side in process.sides))
    spans = given.withColumn(SPAN, span_of(process))
    together = spans.repartition(f.col(SPAN), *keys).sortWithinPartitions(f.col(SPAN), *keys, *ORDER)
    types = {"_event_time": "TIMESTAMP"} | {
        each.name: each.type.spark for each in process.schema(side).fields
    }
    schema = ", ".join(f"{quote_column(name)} {type}" for name, type in types.items())

    patience = find_task_limit(process)

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ended_after = patience if TaskContext.get() else None
        return fold_sorted_rows(process, batches, mark, side=side, ended_after=ended_after)

    return together.mapInArrow(limit_task_memory(fold, memory), schema)


def select_side_rows(rows: DataFrame, process: CompiledProcess, side: JoinSide) -> DataFrame:
    """Return the rows of one side that a process is given, with its columns."""
    if side.source:
        rows = rows.where(f.col(SOURCE) == side.source)
    if process.selective:
        rows = rows.where(SELECTED)
    if side.where:
        rows = rows.where(side.where.spark)
    columns = [
        f.expr(side.made[each.name].spark).alias(each.name)
        if each.name in side.made
        else f.col(quote_column(each.name))
        for each in side.columns
    ]
    return rows.select(*ORDER, *columns)


def span_of(process: CompiledProcess) -> Column:
    """Return where the span begins in which a row is, in microseconds from 1970."""
    at = f.unix_micros("_event_time")
    return at - f.pmod(at, f.lit(process.size))
