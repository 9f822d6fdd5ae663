"""A worker's memory limit, in a worker of Spark's: the record that breaks it ends its task, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.unit.records import pipeline

from seamline import Stream
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.spark.tasks.task import REPORT, collect_reports, kernel_task, merge_task_reports

RAW = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, headers STRING"


def judged(spark: SparkSession, folder: Path, values: Sequence[bytes]) -> KernelResult:
    """Let Spark run the kernel over records, as a micro-batch does."""
    made = compile_pipeline(
        pipeline(
            "at TIMESTAMP, items ARRAY<INT>",
            max_record_parts=100_000_000,
            stream=Stream(worker_memory="2g"),
        )
    )
    config = KernelConfig(
        made, {"t": "T"}, 1, 7, {}, frozenset(view.id for view in made.views), folder, folder, dry=True
    )
    now = datetime(2024, 3, 1, 12, tzinfo=UTC)
    rows = [(None, value, "t", 0, at, now, None) for at, value in enumerate(values)]
    frame = spark.createDataFrame(rows, RAW)
    return merge_task_reports(collect_reports(frame.coalesce(1).mapInArrow(kernel_task(config), REPORT)))


def test_a_worker_that_wants_more_than_its_memory_fails_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Of 4 million parts; the next task has a worker, and the machine had nobody to kill."""
    sane = json.dumps({"at": "2024-03-01T10:00:00Z", "items": [1, 2]}).encode()
    huge = json.dumps({"at": "2024-03-01T10:00:00Z", "items": [1] * 4_000_000}).encode()
    assert judged(spark, tmp_path, [sane]).accepted.total() == 1
    with pytest.raises(PySparkException, match=r"(?i)memory|failed to allocate|bad_alloc|crashed"):
        judged(spark, tmp_path, [sane, huge])
    assert judged(spark, tmp_path, [sane]).accepted.total() == 1
