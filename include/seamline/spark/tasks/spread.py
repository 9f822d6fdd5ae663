"""Work that goes by number, spread over Spark's tasks: nothing but a number goes in, a few rows of report come out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from seamline.model.errors import SparkFailed
from seamline.spark.session.session import is_spark_connect
from seamline.spark.tasks.task import REPORT, SCHEMA, collect_reports, freeze_worker_heap

DONE = "done"
"""The kind of the row that a task reports last."""
Row = tuple[str, bytes]


def run_in_tasks(spark: SparkSession, work: Callable[[int], Iterable[Row]], count: int) -> list[Row]:
    """Do ``work`` for every number below ``count``, each in a task of its own, and return all rows of kind and payload.

    A Spark of this process does it without SQL, which is slower to plan than many a task takes; a Spark Connect server
    takes nothing but SQL. Raises Spark's error where a task fails, and SparkFailed if a task's rows are missing:
    what ``collect`` returns while the JVM is killed is incomplete, without an error.
    """
    if not count:
        return []
    if is_spark_connect():
        return require_all_reported(
            collect_reports(spark.range(0, count, 1, count).mapInArrow(by_batches(work), REPORT)), count
        )
    numbers = spark.sparkContext.parallelize(range(count), count)
    return require_all_reported(numbers.mapPartitions(by_numbers(work)).collect(), count)


def count_task_slots(spark: SparkSession) -> int:
    """Count how many tasks run at once; of a server that does not say, as many as this machine has cores."""
    if is_spark_connect():
        return int(spark.conf.get("spark.default.parallelism", None) or os.cpu_count() or 1)
    return spark.sparkContext.defaultParallelism


def by_numbers(work: Callable[[int], Iterable[Row]]) -> Callable[[Iterable[int]], Iterator[Row]]:
    """Make the function for a partition of numbers."""

    def task(numbers: Iterable[int]) -> Iterator[Row]:
        for number in numbers:
            yield from work(number)
            yield DONE, b""
        freeze_worker_heap()

    return task


def by_batches(
    work: Callable[[int], Iterable[Row]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function for ``mapInArrow`` over numbers; it yields rows of ``REPORT``."""
    rows = by_numbers(work)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for kind, payload in rows(number for batch in batches for number in batch.column(0).to_pylist()):
            yield pa.RecordBatch.from_arrays(
                [pa.array([kind]), pa.array([payload], pa.binary())], schema=SCHEMA
            )

    return task


def require_all_reported(rows: Sequence[Row], count: int) -> list[Row]:
    """Return what was reported, without the last row of each task; SparkFailed unless there are ``count`` of those."""
    told = [row for row in rows if row[0] != DONE]
    if len(rows) - len(told) != count:
        raise SparkFailed(
            f"Only {len(rows) - len(told)} of {count} tasks have reported all that they did.",
            hint="Spark was interrupted: run it again.",
        )
    return told
