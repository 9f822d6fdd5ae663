"""Raw records of a few offsets, which this process reads by itself: a job of Spark's would take a tenth of a second."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition

from seamline.kafka.clients import open_client
from seamline.kafka.connections import KafkaConnection

log = logging.getLogger("seamline.stream")
SOON = 2.0
"""Seconds within which it is done, or not at all."""
RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("headers", pa.string()),
    ]
)
Place = tuple[str, int]
"""A topic's name and a partition."""


class RangeReader:
    """Reads ranges of offsets, by one client that stays open; from one thread at a time."""

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection = connection
        self.consumer: KafkaConsumer | None = None

    def read(self, ranges: Mapping[Place, tuple[int, int]]) -> pa.Table | None:
        """Read the records from the first offset of each place up to the second, as the stream reads them.

        They are in the order of the places. None where that is not done soon, for whatever reason: then somebody
        else has to read them, and say what is wrong.
        """
        try:
            self.consumer = self.consumer or self.open()
            found = fetch_ranges(self.consumer, ranges)
        except Exception as problem:  # noqa: BLE001 - whatever it is, Spark reads them and says what is wrong
            log.info("A few records are left to Spark: %s", problem)
            found = None
        if found is None:
            with suppress(Exception):
                self.close()
            self.consumer = None
            return None
        return make_raw_records(record for place in ranges for record in found[place])

    def open(self) -> KafkaConsumer:
        """Open the client."""
        return open_client(
            KafkaConsumer,
            **self.connection.for_client(),
            client_id="seamline-ranges",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=self.connection.isolation_level,
            fetch_max_wait_ms=10,
            bootstrap_timeout_ms=int(SOON * 1000),
            metrics_enabled=False,
        )

    def close(self) -> None:
        """Close the client; the next reading opens another one."""
        if self.consumer:
            self.consumer.close(autocommit=False)
        self.consumer = None


def fetch_ranges(
    consumer: KafkaConsumer, ranges: Mapping[Place, tuple[int, int]]
) -> dict[Place, list[Any]] | None:
    """Fetch the records of each place, None where that takes too long."""
    waiting = {TopicPartition(*place): end for place, (_, end) in ranges.items()}
    found: dict[Place, list[Any]] = {place: [] for place in ranges}
    consumer.assign(list(waiting))
    for (topic, partition), (start, _) in ranges.items():
        consumer.seek(TopicPartition(topic, partition), start)
    until = time.monotonic() + SOON
    while waiting and time.monotonic() < until:
        for place, records in consumer.poll(50).items():
            _, end = ranges[place.topic, place.partition]
            found[place.topic, place.partition] += [record for record in records if record.offset < end]
        # It asks the broker after a change of leaders, and may have none by then.
        at = {place: consumer.position(place, timeout_ms=100) for place in waiting}
        done = [place for place, end in waiting.items() if (at[place] or 0) >= end]
        for place in done:
            del waiting[place]
            consumer.pause(place)
    consumer.unsubscribe()
    return None if waiting else found


def make_raw_records(records: Iterable[Any]) -> pa.Table:
    """Make a table as Spark's source makes it; headers are JSON text with their values in base64."""
    rows = [
        (
            each.key,
            each.value,
            each.topic,
            each.partition,
            each.offset,
            each.timestamp,
            encode_headers(each.headers),
        )
        for each in records
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(RAW)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RAW, strict=True)]
    return pa.table(arrays, schema=RAW)


def encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> str | None:
    """Encode headers as Spark's ``to_json`` does: None where there are none, and no value where it is NULL."""
    if not headers:
        return None
    return json.dumps(
        [
            {"key": name} if value is None else {"key": name, "value": base64.b64encode(value).decode()}
            for name, value in headers
        ]
    )
