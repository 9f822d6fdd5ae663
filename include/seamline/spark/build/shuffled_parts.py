"""Bytes that go from tasks to parts through Spark's own shuffle: who sends says so, and a part hears from everybody.

What a task sends to a part is the same at each trial of it, so that parts of several trials fit together; a part that
has not heard each task once, and all of it, fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from seamline.model.errors import SparkFailed
from seamline.spark.tasks.spread import DONE, Row, require_all_reported
from seamline.spark.tasks.task import REPORT, SCHEMA, collect_reports, freeze_worker_heap

SENT = StructType(
    [
        StructField("part", IntegerType()),
        StructField("task", IntegerType()),
        StructField("chunks", IntegerType()),
        StructField("payload", BinaryType()),
    ]
)
"""A chunk from a task to a part. The last row of a task for a part has no payload, and says how many chunks it sent."""
SENT_SCHEMA = pa.schema(
    [("part", pa.int32()), ("task", pa.int32()), ("chunks", pa.int32()), ("payload", pa.binary())]
)
Sending = Callable[[int], Iterable[tuple[int, bytes]]]
"""Makes chunks for parts of what a task, by number, reads."""
Receiving = Callable[[Iterator[bytes]], Iterable[Row]]
"""Makes a part's report of all its chunks, in whatever order they come, once it has heard the last."""
FEW = 4
"""Up to so many parts are picked one by one."""


def run_in_parts(
    spark: SparkSession, sending: Sending, count: int, receiving: Receiving, parts: int
) -> list[Row]:
    """Let ``count`` tasks send chunks to ``parts``; return what these report. Raises as ``run_in_tasks``."""
    numbers = spark.range(0, count, 1, count)
    sent = numbers.mapInArrow(send_in_task(sending, parts), SENT).repartitionById(parts, "part")
    found = collect_reports(sent.mapInArrow(receive_in_task(receiving, count), REPORT))
    return require_all_reported(found, parts)


def send_in_task(
    sending: Sending, parts: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function for ``mapInArrow`` over numbers; it yields rows of ``SENT``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            told: Counter[int] = Counter()
            for part, payload in sending(number):
                told[part] += 1
                yield encode_row(part, number, 0, payload)
            for part in range(parts):
                yield encode_row(part, number, told[part], None)
        freeze_worker_heap()

    return task


def encode_row(part: int, task: int, chunks: int, payload: bytes | None) -> pa.RecordBatch:
    """Make a row of ``SENT``: a batch of its own, since chunks are large."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([part], pa.int32()),
            pa.array([task], pa.int32()),
            pa.array([chunks], pa.int32()),
            pa.array([payload], pa.binary()),
        ],
        schema=SENT_SCHEMA,
    )


def receive_in_task(
    receiving: Receiving, count: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function for ``mapInArrow`` over rows of ``SENT``; it yields rows of ``REPORT``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for kind, payload in receiving(require_all_heard(batches, count)):
            yield encode_report(kind, payload)
        yield encode_report(DONE, b"")
        freeze_worker_heap()

    return task


def encode_report(kind: str, payload: bytes) -> pa.RecordBatch:
    """Make a row of ``REPORT``."""
    return pa.RecordBatch.from_arrays([pa.array([kind]), pa.array([payload], pa.binary())], schema=SCHEMA)


def require_all_heard(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[bytes]:
    """Return the chunks of a part; SparkFailed at the end unless each of ``count`` tasks was heard once, and whole."""
    heard: Counter[int] = Counter()
    told: dict[int, int] = {}
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            _, task, chunks, payload = row
            if payload is not None:
                heard[task] += 1
                yield payload
            elif task in told:
                raise SparkFailed(f"Task {task} was heard twice.", hint="run it again.")
            else:
                told[task] = chunks
    if sorted(told) != [*range(count)] or any(heard[task] != chunks for task, chunks in told.items()):
        raise SparkFailed(
            f"A part has heard {heard.total()} chunks of {len(told)} tasks; {sum(told.values())} of {count} were sent.",
            hint="Spark was interrupted: run it again.",
        )


def find_parts(hashes: np.ndarray, parts: int) -> np.ndarray:
    """Return the part of each hash of 64 bits, by its upper bits."""
    return ((hashes >> np.uint64(48)).astype(np.uint32) * np.uint32(parts) >> np.uint32(16)).astype(np.uint16)


def scatter(hashes: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray]]:
    """Return the numbers of the rows of each part that has some, in order."""
    found = find_parts(hashes, parts)
    if parts <= FEW:
        chosen = [np.flatnonzero(found == part) for part in range(parts)]
    else:
        bounds = np.bincount(found, minlength=parts).cumsum()[:-1]
        chosen = np.split(np.argsort(found, kind="stable"), bounds)
    return ((part, rows) for part, rows in enumerate(chosen) if len(rows))
