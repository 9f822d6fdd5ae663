"""Raw Kafka records as Spark hands them over: gathered, without what the master contains, with coordinates."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.arrow_types import COORDINATES, HEADERS, INSTANT
from seamline.model.protocol.offsets import Lane

if TYPE_CHECKING:
    from seamline.kernel.kernel_config import KernelConfig

CHUNK = 250_000
"""Records: a task's share of a full epoch, by and large. A chunk costs some milliseconds, however few."""
CHUNK_BYTES = 80 << 20
"""The size of a chunk of large records: of 300 bytes each, with all that Kafka knows of them, it is as many records."""


def combine_small_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather small batches, so that a chunk is worth a query and memory stays bounded."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= CHUNK or size >= CHUNK_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, count, size = [], 0, 0
    if count:
        yield pa.Table.from_batches(waiting)


def select_new_records(raw: pa.Table, config: KernelConfig) -> pa.Table:
    """Drop what the master contains, and add coordinates to the rest."""
    topics = pc.unique(raw["topic"]).to_pylist()
    if any(config.committed.values()):
        raw = pa.concat_tables([drop_committed_records(raw, topic, topics, config) for topic in topics])
    return add_coordinates(raw, config.topic_ids, config.epoch, config.pipeline.record_version)


def add_coordinates(raw: pa.Table, topic_ids: Mapping[str, str], epoch: int, record_version: str) -> pa.Table:
    """Return raw records with ``COORDINATES``."""
    topics = pc.unique(raw["topic"]).to_pylist()
    ids = pa.array([topic_ids[topic] for topic in topics], pa.string())
    count = raw.num_rows
    columns = [
        raw["topic"],
        pc.take(ids, pc.index_in(raw["topic"], pa.array(topics, pa.string()))),
        raw["partition"],
        raw["offset"],
        raw["timestamp"].cast(INSTANT),
        raw["key"].cast(pa.binary()),
        raw["value"].cast(pa.binary()),
        parse_headers(raw),
        pa.repeat(pa.scalar(epoch, pa.int64()), count),
        pa.repeat(pa.scalar(record_version), count),
    ]
    return pa.table(columns, schema=COORDINATES)


def drop_committed_records(
    raw: pa.Table, topic: str, topics: Sequence[str], config: KernelConfig
) -> pa.Table:
    """Keep a topic's records that the master does not contain; ``topics`` are all that the table has."""
    if len(topics) > 1:
        raw = filter_rows(raw, pc.equal(raw["topic"], topic))
    found = pc.unique(raw["partition"]).to_pylist()
    id = config.topic_ids[topic]
    ends = pa.array([config.committed.get(Lane(id, partition), 0) for partition in found], pa.int64())
    limits = pc.take(ends, pc.index_in(raw["partition"], pa.array(found, pa.int32())))
    return filter_rows(raw, pc.greater_equal(raw["offset"], limits))


def filter_rows(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Keep the rows of a mask without NULL; where that is all of them, nothing is copied."""
    return rows if pc.all(mask).as_py() else rows.filter(mask)


def parse_headers(raw: pa.Table) -> pa.ChunkedArray:
    """Read the headers, which come as JSON text with their values in base64; NULL where there are none."""
    texts = raw["headers"]
    if texts.null_count == raw.num_rows:
        return pa.chunked_array([pa.nulls(raw.num_rows, HEADERS)])
    found = [
        None if text is None else [parse_header(each) for each in json.loads(text)]
        for text in texts.to_pylist()
    ]
    return pa.chunked_array([pa.array(found, HEADERS)])


def parse_header(found: Mapping[str, str]) -> dict[str, Any]:
    """Read one header; a value that is not there is NULL."""
    value = found.get("value")
    return {"key": found.get("key"), "value": None if value is None else base64.b64decode(value)}


def reject_all_rows(rows: pa.Table, reason: str, detail: str) -> pa.Table:
    """Refuse all rows for one reason."""
    rows = rows.append_column("_reason", pa.repeat(pa.scalar(reason), rows.num_rows))
    return rows.append_column("_detail", pa.repeat(pa.scalar(detail), rows.num_rows))
