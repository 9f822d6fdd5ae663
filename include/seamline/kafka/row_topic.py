"""A topic that one writer keeps, in transactions, and a text in a topic beside it that says how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from confluent_kafka import Message

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.sending.committed_records import read_topic
from seamline.kafka.sending.transactional_writer import Header, Outgoing, TransactionalWriter
from seamline.model.errors import SetupError

Record = tuple[bytes, bytes | None]
"""A key and its value; None for a tombstone."""
Place = tuple[bytes, int]
"""A key, and the partition in which there is a record of it: another one, where partitions were added since."""
Letter = tuple[bytes | None, bytes | None, list[Header]]
"""A key, a value and headers."""
POSITION = ".position"
"""What the name of the topic ends with that says how far another is."""
KEY = b"position"
COMPACTED, DELETED = {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}
KEPT_SHORT = {**COMPACTED, "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}
TAIL = 64
"""Offsets at the end of the position's topic that are looked at first; marks of transactions have offsets too."""
OWN_PARTITION = -1


class RowTopic(TransactionalWriter):
    """One topic's writer and its position.

    ``config`` is what a topic is created with where there is none.
    """

    def __init__(
        self, connection: KafkaConnection, topic: str, owner: str, config: Mapping[str, str] = COMPACTED
    ) -> None:
        self.connection, self.topic, self.told, self.owner = connection, topic, f"{topic}{POSITION}", owner
        with TopicAdmin(connection) as admin:
            names = admin.topics()
            if topic not in names:
                admin.create_topic(topic, OWN_PARTITION, config=config)
            if self.told not in names:
                admin.create_topic(self.told, 1, config=KEPT_SHORT)
            self.incarnation = f"{admin.topic_id(topic)} ".encode()
        # Before anything is fenced: two that take one topic for their own would end each other's transactions.
        self.require_own()
        super().__init__(connection, f"seamline.sinks.{topic}", topic)

    def write(self, records: Iterable[Record], position: bytes) -> None:
        """Write records and the position in one transaction; nobody knows what became of it where this raises."""
        self.commit((Outgoing(self.topic, key, value) for key, value in records), position)

    def add(self, letters: Iterable[Letter], position: bytes) -> None:
        """Write records with headers, and the position, in one transaction."""
        self.commit(
            (Outgoing(self.topic, key, value, headers=headers) for key, value, headers in letters), position
        )

    def delete(self, places: Iterable[Place], position: bytes) -> None:
        """Write tombstones beside records, and the position, in one transaction."""
        self.commit((Outgoing(self.topic, key, None, partition) for key, partition in places), position)

    def commit(self, records: Iterable[Outgoing], position: bytes) -> None:
        """Write records, and the position, in one transaction."""
        told = self.incarnation + f"{self.owner} ".encode() + position
        self.commit_records(chain(records, (Outgoing(self.told, KEY, told),)))

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
                # Beside it there may be how far its letters have been replayed.
                last = message.value() if message.key() == KEY else last
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

    def is_empty(self) -> bool:
        """Return whether the topic has no committed record at all."""
        return next(self.read_topic(self.topic), None) is None

    def empty(self) -> None:
        """Delete all records of the topic, for ever, as retention does."""
        with TopicAdmin(self.connection) as admin:
            first, ends = admin.beginning_offsets(self.topic), admin.end_offsets(self.topic)
            if there := {part: end for part, end in ends.items() if first[part] < end}:
                admin.delete_records(self.topic, there)

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
        return read_topic(self.connection, topic, reach)
