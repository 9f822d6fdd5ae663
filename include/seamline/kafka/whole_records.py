"""Records of a few partitions, read whole from where somebody stopped up to an end; for topics that have little."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import kafka.errors as errors
from kafka import KafkaConsumer, TopicPartition

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.consumers import open_consumer
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.kafka.topic_ends import to_nearest_instant
from seamline.model.errors import KafkaUnavailable

PATIENCE = 15.0
AT_ONCE = 1_000


@dataclass(frozen=True)
class WholeRecord:
    """A record as Kafka has it."""

    partition: int
    """The partition."""
    offset: int
    """The offset."""
    at: datetime
    """The Kafka timestamp, UTC."""
    value: bytes | None
    """The value; None for a tombstone."""


@dataclass(frozen=True)
class Piece:
    """Records of all partitions that came together, and how far each was read with them."""

    records: tuple[WholeRecord, ...]
    """In the order of their offsets, partition by partition."""
    reached: Mapping[int, int]
    """The offset after the last that was passed, of each partition that got on."""


def read_whole_records(
    connection: KafkaConnection,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    *,
    timeout: float = PATIENCE,
) -> Generator[Piece]:
    """Yield the records from the first offset of each partition up to the second, piece by piece.

    KafkaUnavailable where nothing comes for ``timeout`` seconds.
    """
    waiting = {TopicPartition(topic, part): end for part, (start, end) in ranges.items() if start < end}
    if not waiting:
        return
    try:
        with open_consumer(
            connection, "seamline-counts", timeout=timeout, auto_offset_reset="earliest"
        ) as consumer:
            yield from poll_pieces(
                consumer, waiting, {place: ranges[place.partition][0] for place in waiting}, timeout
            )
    except errors.KafkaError as problem:
        raise explain_kafka_error(problem, connection, topic) from problem


def poll_pieces(
    consumer: KafkaConsumer,
    waiting: dict[TopicPartition, int],
    at: dict[TopicPartition, int],
    timeout: float,
) -> Iterator[Piece]:
    """Poll until each partition is read to its end: markers of transactions have offsets, and no record."""
    consumer.assign(list(waiting))
    for place, start in at.items():
        consumer.seek(place, start)
    until = time.monotonic() + timeout
    while waiting:
        polled = consumer.poll(200, max_records=AT_ONCE)
        records, reached = list[WholeRecord](), dict[int, int]()
        for place, end in list(waiting.items()):
            found = [record for record in polled.get(place, ()) if record.offset < end]
            records += [
                WholeRecord(place.partition, each.offset, to_nearest_instant(each.timestamp), each.value)
                for each in found
            ]
            position = min(consumer.position(place), end)
            if position > at[place]:
                at[place] = reached[place.partition] = position
            if position >= end:
                del waiting[place]
                consumer.pause(place)
        if reached:
            until = time.monotonic() + timeout
            yield Piece(tuple(records), reached)
        elif time.monotonic() > until:
            [place, *_] = waiting
            raise KafkaUnavailable(
                f"Kafka returned nothing of {place.topic} partition {place.partition} from offset {at[place]} on "
                f"for {timeout:g} s.",
                hint="retry when the broker is under less load.",
            )
