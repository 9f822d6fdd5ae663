"""One run of the kernel over a micro-batch: how it is laid out, what it made, and what it failed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from seamline.kernel.kernel_result import KernelResult
from seamline.model.protocol.offsets import OffsetRange
from seamline.plan.stream.epoch_numbers import count_tasks
from seamline.spark.session.attempt_notes import Note
from seamline.spark.session.session import is_spark_connect


@dataclass(frozen=True)
class Attempt:
    """What one run of the kernel made."""

    number: int
    """The epoch."""
    views: frozenset[str]
    """Ids of the versions for which states were made."""
    versions: Mapping[str, str]
    """Versions of the look-ups, by look-up name."""
    result: KernelResult
    """What the kernel wrote and counted."""

    def facts(self, ranges: Sequence[OffsetRange]) -> dict[str, Any]:
        """Return what the ledger's row says of it."""
        result = self.result
        return {
            "ranges": tuple(ranges),
            "accepted": dict(result.accepted),
            "refused": dict(result.refused),
            "late": dict(result.late),
            "very_late": dict(result.very_late),
            "max_event_time": result.max_event_time,
            "lookups": self.versions,
            "astray": dict(result.astray),
        }


class KernelFailed(Exception):
    """The kernel's run ended in ``cause``."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def coalesce_small_epoch(frame: DataFrame, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Let fewer tasks read a small epoch: each of them costs time of its own, and makes a file."""
    count = count_tasks(sum(map(len, ranges)))
    return frame.coalesce(count) if count < len(ranges) else frame


def is_frame_alive(frame: DataFrame) -> bool:
    """Return whether the JVM behind a frame still answers."""
    return is_session_alive(frame.sparkSession)


def is_session_alive(spark: SparkSession) -> bool:
    """Return whether a session's JVM still answers, or the server that it is of."""
    try:
        return bool(
            spark.conf.get("spark.app.id") if is_spark_connect() else spark.sparkContext.defaultParallelism
        )
    except Exception:  # noqa: BLE001 - whatever py4j or gRPC makes of a dead JVM
        return False


def make_unread_record(note: Note, ids: Mapping[str, str]) -> pa.RecordBatch:
    """Make the raw record that stands for one that cannot be read: its place, without key, value and headers.

    What it said is in Kafka alone; its time is now.
    """
    [part] = note.ranges
    [topic] = [name for name, id in ids.items() if id == part.lane.topic_id]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(1, pa.binary()),
            "value": pa.nulls(1, pa.binary()),
            "headers": pa.nulls(1, pa.string()),
            "topic": [topic],
            "partition": pa.array([part.lane.partition], pa.int32()),
            "offset": pa.array([part.rows[0]], pa.int64()),
            "timestamp": pa.array([datetime.now(UTC)], pa.timestamp("us", "UTC")),
        }
    )


def find_worker_message(error: Exception) -> str:
    """Find the last line of the worker's own words, which Spark puts before the JVM's stack."""
    words = str(error).split("\tat ")[0].strip().splitlines()
    return (words[-1] if words else type(error).__name__)[:500]
