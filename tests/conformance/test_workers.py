"""What Spark and its Python workers are told: how large Arrow batches are, what is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyspark.worker
import pytest
from pyspark.sql import SparkSession

from seamline.spark.session.arrow_batches import COUNTED, FEW_BYTES, MEASURED, BatchSize, batch_size
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.tasks.task import warm_workers

KIB = 1 << 10


@pytest.mark.parametrize(
    ("record_bytes", "chosen"),
    [
        (0, MEASURED),
        (1, COUNTED),
        (300, COUNTED),
        (4 * KIB, COUNTED),
        (5 * KIB, MEASURED),
        (1 << 20, MEASURED),
    ],
)
def test_batches_are_counted_where_as_many_records_are_no_large_batch(
    record_bytes: int, chosen: BatchSize
) -> None:
    """Of what nothing is known yet, the bytes are measured."""
    assert batch_size(record_bytes) is chosen
    assert batch_size(record_bytes) is MEASURED or COUNTED.records * record_bytes <= FEW_BYTES


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, with its settings put back."""
    yield spark
    MEASURED.apply(spark)


def sizes_by(spark: SparkSession, how: BatchSize, text_bytes: int) -> list[int]:
    """Hand 5,000 rows of a text to one task; give the rows of each batch."""

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows for batch in batches]})

    how.apply(spark)
    rows = spark.range(0, 5_000, 1, 1).selectExpr(f"repeat('x', {text_bytes}) AS text")
    return [row.rows for row in rows.mapInArrow(sizes, "rows LONG").collect()]


def test_spark_sizes_batches_as_it_is_told(session: SparkSession) -> None:
    """By number alone, or by bytes as well."""
    assert sizes_by(session, COUNTED, 10) == [2_000, 2_000, 1_000]
    assert sizes_by(session, MEASURED, 10) == [5_000]
    assert len(sizes_by(session, MEASURED, 32 * KIB)) == 3


def test_a_query_is_told_once_and_anew_after_a_failure() -> None:
    """Each setting is a call of the JVM; what has failed may have been a batch that was too large."""
    told: list[str] = []
    conf = SimpleNamespace(set=lambda name, value: told.append(value) if "Records" in name else None)
    frame = cast("Any", SimpleNamespace(sparkSession=SimpleNamespace(conf=conf)))
    epochs = cast("Epochs", SimpleNamespace(record_bytes=0, batch_size=MEASURED))
    for record_bytes in (0, 250, 260, 0, 0, 250):
        epochs.record_bytes = record_bytes
        Epochs.size_batches(epochs, frame)
    assert told == ["2000", "50000", "2000"]


def test_a_warm_worker_has_little_left_to_collect(spark: SparkSession) -> None:
    """PySpark collects after each task, and the next one waits for it."""

    def left(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict(
                {"left": [len(gc.get_objects())], "away": [gc.get_freeze_count()]}
            )

    warm_workers(spark)
    count = spark.sparkContext.defaultParallelism
    for row in spark.range(0, count, 1, count).mapInArrow(left, "left LONG, away LONG").collect():
        # Tasks of earlier tests may have left something in it, but no multiple of what was put away.
        assert row.away > 10_000
        assert 4 * row.left < row.away


def test_workers_have_the_installed_pyspark(session: SparkSession) -> None:
    """Of the zip that Spark names first each of them would compile what it imports."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark.worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.worker.__file__]})

    [found] = session.range(0, 1, 1, 1).mapInArrow(told, "file STRING").collect()
    assert found.file == pyspark.worker.__file__
    assert ".zip" not in found.file
