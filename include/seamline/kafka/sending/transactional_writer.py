"""One writer of topics, in transactions: whoever opens another of the same name ends what this one has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from seamline.kafka.confluent_settings import explain_confluent_error, list_client_settings
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.sending.committed_records import ANSWERS_WITHIN
from seamline.runtime.failpoints import hit_failpoint

BY_KEY = -1
"""Stands for the partition to which a key belongs."""
Header = tuple[str, bytes | None]
Delivered = Callable[[KafkaError | None, Message], None]
"""Told what became of a record."""
LASTS = 60_000
"""Milliseconds after which the broker aborts a transaction that was begun and not ended."""
LARGEST = 256 << 20
"""Bytes of a record that the client passes on: what is too large says the topic, whose setting people can raise."""


class Outgoing(NamedTuple):
    """A record that is to be written."""

    topic: str
    """The topic's name."""
    key: bytes | None
    """The key; None for none."""
    value: bytes | None
    """The value; None for a tombstone."""
    partition: int = BY_KEY
    """The partition, or ``BY_KEY``."""
    headers: Sequence[Header] = ()
    """Headers, in order."""
    timestamp: int = 0
    """Milliseconds since 1970; 0 for now."""


class TransactionalWriter:
    """A producer of transactions.

    Opening it ends what earlier writers of the name have begun, and they can write no more: their next call raises
    Fenced. After any other error nobody knows whether the last transaction is there: whoever goes on opens anew.
    """

    def __init__(self, connection: KafkaConnection, name: str, topic: str) -> None:
        self.connection, self.topic = connection, topic
        self.producer = Producer(
            {
                **list_client_settings(connection),
                "client.id": "seamline-sinks",
                "transactional.id": name,
                "transaction.timeout.ms": LASTS,
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.max.bytes": LARGEST,
                # As Java's clients place keys, so that a topic of theirs is partitioned alike.
                "partitioner": "murmur2_random",
                "allow.auto.create.topics": False,
            }
        )
        try:
            self.producer.init_transactions(ANSWERS_WITHIN)
        except KafkaException as problem:
            raise explain_confluent_error(problem, connection, topic) from problem

    def commit_records(self, records: Iterable[Outgoing]) -> None:
        """Write records in one transaction; nobody knows what became of it where this raises."""
        failed: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        try:
            self.producer.begin_transaction()
            for each in records:
                self.produce(each, note)
            self.producer.flush(ANSWERS_WITHIN)
            if failed:
                raise KafkaException(failed[0])
            hit_failpoint("sink_rows")
            self.producer.commit_transaction(ANSWERS_WITHIN)
        except KafkaException as problem:
            raise explain_confluent_error(problem, self.connection, self.topic) from problem

    def produce(self, record: Outgoing, note: Delivered) -> None:
        """Hand a record to the client, once it has room for it."""
        more: dict[str, Any] = {"headers": [*record.headers]} if record.headers else {}
        if record.timestamp:
            more["timestamp"] = record.timestamp
        while True:
            try:
                place = record.topic, record.value, record.key, record.partition
                self.producer.produce(*place, on_delivery=note, **more)
            except BufferError:
                self.producer.poll(0.1)
            else:
                self.producer.poll(0)
                return

    def close(self) -> None:
        """Let go of the client; the broker aborts a transaction that was not ended."""
        with suppress(KafkaException):
            self.producer.purge()
            self.producer.flush(1.0)
