"""The first record that Kafka returns at or after some offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping

import kafka.errors as errors
from kafka import TopicPartition

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.consumers import open_consumer
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.kafka.record_places import read_timestamp, without_contents
from seamline.model.protocol.log_tail import Tail, hash_record_value

SHORT = 5.0

Place = tuple[str, int]
"""A topic's name and a partition."""


def read_first_records(
    connection: KafkaConnection, places: Mapping[Place, int], *, timeout: float = SHORT
) -> dict[Place, Tail]:
    """Return the first record at or after an offset of each place, as the isolation level sees them.

    Without those of which nothing came within ``timeout`` seconds: there may be none. KafkaUnavailable.
    """
    waiting = {TopicPartition(*place): at for place, at in places.items()}
    found: dict[Place, Tail] = {}
    if not waiting:
        return found
    until = time.monotonic() + timeout
    try:
        with open_consumer(
            connection,
            "seamline-tail",
            timeout=timeout,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=4096,
            fetch_max_wait_ms=100,
        ) as consumer:
            without_contents(consumer, timed=True, hashed=True)
            consumer.assign(list(waiting))
            for place, at in waiting.items():
                consumer.seek(place, at)
            while waiting and time.monotonic() < until:
                for place, records in consumer.poll(100, max_records=1).items():
                    if waiting.pop(place, None) is not None:
                        first = records[0]
                        # What was sent in a format of before Kafka 0.11 comes as it is.
                        value = (
                            first.value if isinstance(first.value, str) else hash_record_value(first.value)
                        )
                        found[place.topic, place.partition] = Tail(first.offset, read_timestamp(first), value)
                        consumer.pause(place)
    except errors.KafkaError as problem:
        raise explain_kafka_error(problem, connection) from problem
    return found
