"""A topic that one writer keeps, in transactions, and a text in a topic beside it that says how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.confluent_settings import explain_confluent_error, list_client_settings
from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import KafkaUnavailable, SetupError
from seamline.runtime.failpoints import hit_failpoint

Record = tuple[bytes, bytes | None]
"""A key and its value; None for a tombstone."""
Place = tuple[bytes, int]
"""A key, and the partition in which there is a record of it: another one, where partitions were added since."""
BY_KEY = -1
"""Stands for the partition to which a key belongs."""
Delivered = Callable[[KafkaError | None, Message], None]
"""Told what became of a record."""
POSITION = ".position"
"""What the name of the topic ends with that says how far another is."""
KEY = b"position"
COMPACTED = {"cleanup.policy": "compact"}
KEPT_SHORT = {**COMPACTED, "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}
LASTS = 60_000
"""Milliseconds after which the broker aborts a transaction that was begun and not ended."""
ANSWERS_WITHIN = 30.0
"""Seconds for one call of the client, and between two records of a topic that is read to its end."""
TAIL = 64
"""Offsets at the end of the position's topic that are looked at first; marks of transactions have offsets too."""
OWN_PARTITION = -1
LARGEST = 256 << 20
"""Bytes of a record that the client passes on: what is too large says the topic, whose setting people can raise."""


class RowTopic:
    """One topic's writer and its position.

    Opening it ends what earlier writers have begun, and they can write no more: their next call raises Fenced. After
    any other error nobody knows whether the last transaction is there: whoever goes on opens anew.
    """

    def __init__(self, connection: KafkaConnection, topic: str, owner: str) -> None:
        self.connection, self.topic, self.told, self.owner = connection, topic, f"{topic}{POSITION}", owner
        with TopicAdmin(connection) as admin:
            names = admin.topics()
            if topic not in names:
                admin.create_topic(topic, OWN_PARTITION, config=COMPACTED)
            if self.told not in names:
                admin.create_topic(self.told, 1, config=KEPT_SHORT)
            self.incarnation = f"{admin.topic_id(topic)} ".encode()
        # Before anything is fenced: two that take one topic for their own would end each other's transactions.
        self.require_own()
        self.producer = Producer(
            {
                **list_client_settings(connection),
                "client.id": "seamline-sinks",
                "transactional.id": f"seamline.sinks.{topic}",
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

    def write(self, records: Iterable[Record], position: bytes) -> None:
        """Write records and the position in one transaction; nobody knows what became of it where this raises."""
        self.commit(((key, value, BY_KEY) for key, value in records), position)

    def delete(self, places: Iterable[Place], position: bytes) -> None:
        """Write tombstones beside records, and the position, in one transaction."""
        self.commit(((key, None, partition) for key, partition in places), position)

    def commit(self, records: Iterable[tuple[bytes, bytes | None, int]], position: bytes) -> None:
        """Write records into partitions, and the position, in one transaction."""
        failed: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        try:
            self.producer.begin_transaction()
            for key, value, partition in records:
                self.produce(self.topic, key, value, partition, note)
            self.produce(
                self.told, KEY, self.incarnation + f"{self.owner} ".encode() + position, BY_KEY, note
            )
            self.producer.flush(ANSWERS_WITHIN)
            if failed:
                raise KafkaException(failed[0])
            hit_failpoint("sink_rows")
            self.producer.commit_transaction(ANSWERS_WITHIN)
        except KafkaException as problem:
            raise explain_confluent_error(problem, self.connection, self.topic) from problem

    def produce(self, topic: str, key: bytes, value: bytes | None, partition: int, note: Delivered) -> None:
        """Hand a record to the client, once it has room for it."""
        while True:
            try:
                self.producer.produce(topic, value, key, partition, on_delivery=note)
            except BufferError:
                self.producer.poll(0.1)
            else:
                self.producer.poll(0)
                return

    def require_own(self) -> None:
        """Raise SetupError where the position is another owner's."""
        owner = self.read_told()[0]
        if owner not in ("", self.owner):
            raise SetupError(
                f"Topic {self.topic!r} is kept by {owner}, as {self.told} says.",
                hint=f"name another topic; or, if {owner} is no longer there, delete the topic {self.told}, and run "
                "`seamline sinks resend`.",
            )

    def read_position(self) -> bytes | None:
        """Read the last position that was committed; None if there never was one of this incarnation of the topic."""
        return self.read_told()[1]

    def read_told(self) -> tuple[str, bytes | None]:
        """Read who has written the last position, and it; nobody and None if there is none of this incarnation."""
        last = self.read_last()
        if last is None or not last.startswith(self.incarnation):
            return "", None
        owner, _, position = last.removeprefix(self.incarnation).partition(b" ")
        return owner.decode(), position

    def read_last(self) -> bytes | None:
        """Read the last record of the position's topic; None if it has none."""
        reach = TAIL
        while True:
            last = None
            for message in self.read_topic(self.told, reach):
                last = message.value()
            if last is not None:
                return last
            if self.begins_within(reach):
                return None
            reach *= 16

    def begins_within(self, reach: int) -> bool:
        """Return whether so many offsets from the end are all that the position's topic has."""
        with TopicAdmin(self.connection) as admin:
            first, end = admin.beginning_offsets(self.told)[0], admin.end_offsets(self.told)[0]
        return end - first <= reach

    def has_rows(self) -> bool:
        """Return whether the topic has any committed record that is not a tombstone."""
        return any(message.value() is not None for message in self.read_topic(self.topic))

    def read_places(self) -> Iterator[Place]:
        """Read where there are committed records up to where the topic ends now, tombstones left out."""
        for message in self.read_topic(self.topic):
            key, partition = message.key(), message.partition()
            if key is not None and partition is not None and message.value() is not None:
                yield key, partition

    def read_topic(self, topic: str, reach: int | None = None) -> Iterator[Message]:
        """Read a topic to its end, from its beginning or so many offsets before its end."""
        with TopicAdmin(self.connection) as admin:
            first, ends = admin.beginning_offsets(topic), admin.end_offsets(topic)
        starts = {
            part: first[part] if reach is None else max(first[part], ends[part] - reach) for part in ends
        }
        waiting = {part for part, end in ends.items() if starts[part] < end}
        if not waiting:
            return
        consumer = Consumer(
            {
                **list_client_settings(self.connection),
                "client.id": "seamline-sinks",
                # Nothing is ever committed to it.
                "group.id": f"seamline.sinks.{self.topic}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            consumer.assign([TopicPartition(topic, part, starts[part]) for part in waiting])
            yield from self.read_to_end(consumer, waiting)
        except KafkaException as problem:
            raise explain_confluent_error(problem, self.connection, topic) from problem
        finally:
            consumer.close()

    def read_to_end(self, consumer: Consumer, waiting: set[int]) -> Iterator[Message]:
        """Read until each partition says that it is at its end; KafkaUnavailable where one falls silent before."""
        heard = time.monotonic()
        while waiting:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() - heard > ANSWERS_WITHIN:
                    raise KafkaUnavailable(
                        f"Kafka at {self.connection.called} does not go on with {self.topic}.",
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

    def close(self) -> None:
        """Let go of the client; the broker aborts a transaction that was not ended."""
        with suppress(KafkaException):
            self.producer.purge()
            self.producer.flush(1.0)
