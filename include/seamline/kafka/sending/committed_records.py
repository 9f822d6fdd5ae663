"""The committed records of a topic, from given offsets to where each partition ends now."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.confluent_settings import explain_confluent_error, list_client_settings
from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import KafkaUnavailable

ANSWERS_WITHIN = 30.0
"""Seconds for one call of the client, and between two records of a topic that is read to its end."""


def read_topic(connection: KafkaConnection, topic: str, reach: int | None = None) -> Iterator[Message]:
    """Read a topic to its end, from its beginning or so many offsets before its end."""
    with TopicAdmin(connection) as admin:
        first, ends = admin.beginning_offsets(topic), admin.end_offsets(topic)
    starts = {part: first[part] if reach is None else max(first[part], ends[part] - reach) for part in ends}
    waiting = {part: starts[part] for part, end in ends.items() if starts[part] < end}
    yield from read_committed_records(connection, topic, waiting)


def read_committed_records(
    connection: KafkaConnection, topic: str, starts: Mapping[int, int]
) -> Iterator[Message]:
    """Read some partitions, each from an offset to its end."""
    if not starts:
        return
    consumer = Consumer(
        {
            **list_client_settings(connection),
            "client.id": "seamline-sinks",
            # Nothing is ever committed to it.
            "group.id": f"seamline.sinks.{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, part, at) for part, at in starts.items()])
        yield from read_to_end(consumer, {*starts}, connection, topic)
    except KafkaException as problem:
        raise explain_confluent_error(problem, connection, topic) from problem
    finally:
        consumer.close()


def read_to_end(
    consumer: Consumer, waiting: set[int], connection: KafkaConnection, topic: str
) -> Iterator[Message]:
    """Read until each partition says that it is at its end; KafkaUnavailable where one falls silent before."""
    heard = time.monotonic()
    while waiting:
        message = consumer.poll(0.5)
        if message is None:
            if time.monotonic() - heard > ANSWERS_WITHIN:
                raise KafkaUnavailable(
                    f"Kafka at {connection.called} does not go on with {topic}.",
                    hint="it is tried again; check that the broker is running.",
                )
            continue
        heard = time.monotonic()
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
            waiting.discard(message.partition())
        else:
            raise KafkaException(error)
