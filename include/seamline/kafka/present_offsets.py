"""Which offsets of a topic have a record, asked of Kafka by reading again where they are, and not what they say."""

from __future__ import annotations

import time
from collections.abc import Mapping

import kafka.errors as errors
from kafka import KafkaConsumer, TopicPartition

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.consumers import open_consumer
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.kafka.record_places import without_contents
from seamline.model.errors import KafkaUnavailable
from seamline.model.protocol.offset_runs import Run, Runs

FAR = 5_000
"""Offsets: what lies between two runs is read over if it is less, and skipped if it is more."""
PATIENCE = 15.0

Place = tuple[str, int]
"""A topic's name and a partition."""


def find_present_offsets(
    connection: KafkaConnection, asked: Mapping[Place, Runs], *, timeout: float = PATIENCE
) -> dict[Place, list[Run]]:
    """Return the offsets in or near each place's runs that have a record, as the isolation level sees them.

    Markers of transactions have none. KafkaUnavailable where nothing comes for ``timeout`` seconds.
    """
    if not any(asked.values()):
        return {}
    try:
        with open_consumer(
            connection, "seamline-audit", timeout=timeout, auto_offset_reset="earliest"
        ) as consumer:
            without_contents(consumer, timed=False)
            return {
                place: read(consumer, TopicPartition(*place), runs, timeout)
                for place, runs in asked.items()
                if runs
            }
    except errors.KafkaError as problem:
        raise explain_kafka_error(problem, connection) from problem


def read(consumer: KafkaConsumer, place: TopicPartition, runs: Runs, timeout: float) -> list[Run]:
    """Read a partition's runs."""
    found: list[Run] = []
    at, position = 0, runs[0][0]
    consumer.assign([place])
    consumer.seek(place, position)
    until = time.monotonic() + timeout
    while at < len(runs):
        for record in consumer.poll(200, max_records=FAR).get(place, ()):
            append_offset(found, record.offset)
        reached = consumer.position(place)
        if reached > position:
            position, until = reached, time.monotonic() + timeout
        elif time.monotonic() > until:
            raise KafkaUnavailable(
                f"Kafka returned nothing of {place.topic} partition {place.partition} from offset {position} on "
                f"for {timeout:g} s.",
                hint="run the audit again when the broker is under less load.",
            )
        while at < len(runs) and runs[at][1] <= position:
            at += 1
        if at < len(runs) and runs[at][0] - position > FAR:
            position = runs[at][0]
            consumer.seek(place, position)
    return found


def append_offset(found: list[Run], offset: int) -> None:
    """Add an offset above all others."""
    if found and found[-1][1] == offset:
        found[-1] = found[-1][0], offset + 1
    else:
        found.append((offset, offset + 1))
