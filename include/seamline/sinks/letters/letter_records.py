"""Rows of the log as records of a topic: key, value and headers as they were read, and why they are there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa

from seamline.kafka.row_topic import Letter
from seamline.model.protocol.sinks.letter_headers import Cause
from seamline.model.time.intervals import EPOCH, format_utc_instant

MILLISECOND = timedelta(milliseconds=1)


def make_letters(rows: pa.Table, pipeline: str, of: str) -> Iterator[Letter]:
    """Make the records of some rows, in their order."""
    for row in rows.to_pylist():
        read = [(each["key"], each["value"]) for each in row["_headers"] or ()]
        yield row["_key"], row["_value"], [*read, *find_cause(row, pipeline, of).to_headers()]


def find_cause(row: dict[str, Any], pipeline: str, of: str) -> Cause:
    """Find why a row is sent, and where it was read."""
    at = row["_kafka_timestamp"]
    return Cause(
        pipeline,
        of,
        row["reason"],
        row["detail"] or "",
        row["_topic"],
        row["_topic_id"],
        row["_partition"],
        row["_offset"],
        0 if at is None else (at - EPOCH) // MILLISECOND,
        row["_epoch"],
        row["_record_version"] or "",
        format_micros(row["event_time"]),
        format_micros(row["mark"]),
        row["unread"],
    )


def format_micros(micros: int | None) -> str:
    """Write an instant; nothing for none."""
    return "" if micros is None else format_utc_instant(EPOCH + timedelta(microseconds=micros))
