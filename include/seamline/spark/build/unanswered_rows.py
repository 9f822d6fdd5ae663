"""Rows of a build that wait for the answer of another system."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import find_question_births
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid
from seamline.spark.build.joined_copies import cell_of
from seamline.spark.build.share_rows import CELL
from seamline.spark.tasks.measures import quote_column


def count_unanswered_rows(
    rows: DataFrame, layout: Layout, join: CompiledJoin, grid: Grid
) -> Mapping[int, int]:
    """Count, by the start of an interval in microseconds, the rows without a record of an answer.

    ``rows`` are all of whole intervals. Those of before the question was asked wait for none.
    """
    assert join.recorded
    born, _ = find_question_births(layout).get(join.question, (NOTHING, 0))
    lefts = rows.where((f.col(SOURCE) == join.left.source) & (f.col("_epoch") > born))
    if join.selective:
        lefts = lefts.where(SELECTED)
    if join.left.where:
        lefts = lefts.where(join.left.where.spark)
    records = rows.where(f.col(SOURCE) == join.right.source).where(join.recorded.spark)
    keys = [f.col(quote_column(right)).alias(left) for left, right, _ in join.on]
    records = records.select(*keys, "_event_time")
    waiting = lefts.join(records, [*(left for left, _, _ in join.on), "_event_time"], "left_anti")
    table = waiting.withColumn(CELL, cell_of(grid)).groupBy(CELL).count().toArrow()
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
