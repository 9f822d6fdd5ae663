"""Epochs without Spark and Kafka: raw records, the task that judges them, and the writer's commit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from seamline.kernel.kernel_config import KernelConfig
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.spark.stream.epoch_writer import Writer
from seamline.testing.engine import RAW

STAMPED = datetime(2026, 1, 6, tzinfo=UTC)


def records(values: list[bytes], topic: str, first: int, *, at: datetime = STAMPED) -> pa.Table:
    """Make raw records of one partition, the first of them at an offset."""
    count = len(values)
    columns = {
        "key": pa.nulls(count, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.nulls(count, pa.string()),
        "topic": pa.repeat(pa.scalar(topic), count),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(range(first, first + count), pa.int64()),
        "timestamp": pa.repeat(pa.scalar(at, pa.timestamp("us", tz="UTC")), count),
    }
    return pa.table(columns, schema=RAW)


def task(pipeline: CompiledPipeline, number: int, home: Path, **more: Any) -> KernelConfig:
    """Return the kernel's task of an epoch whose files go to a folder."""
    given = {
        "views": frozenset(view.id for view in pipeline.views),
        "master": home,
        "quarantine": home,
    }
    return KernelConfig(
        pipeline=pipeline,
        topic_ids=dict.fromkeys(pipeline.definition.source.topics, "t"),
        token=1,
        epoch=number,
        committed={},
        **(given | more),
    )


def next_task(writer: Writer, lookups: Mapping[str, Path] | None = None) -> KernelConfig:
    """Return the kernel's task of a writer's next epoch."""
    return task(
        writer.pipeline,
        writer.take_number(),
        writer.master.table.root,
        views=writer.current,
        quarantine=writer.quarantine.root,
        lookups=dict(lookups or {}),
    )
