"""A topic of dead letters whose records are produced again, and a text beside it that says how far that has got."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from confluent_kafka import Message

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import POSITION
from seamline.kafka.sending.committed_records import read_committed_records, read_topic
from seamline.kafka.sending.transactional_writer import Header, Outgoing, TransactionalWriter
from seamline.model.errors import TopicMissing

REPLAYED = b"replayed"


class Stored(NamedTuple):
    """A record that a topic has."""

    partition: int
    """Its partition."""
    offset: int
    """Its offset."""
    key: bytes | None
    """Its key; None for none."""
    value: bytes | None
    """Its value; None for a tombstone."""
    headers: list[Header]
    """Its headers, in order."""

    @classmethod
    def of(cls, message: Message) -> Stored:
        """Take what a client has read."""
        part, offset = message.partition(), message.offset()
        assert part is not None
        assert offset is not None
        headers: Any = message.headers() or ()
        return cls(part, offset, message.key(), message.value(), [*headers])


class ReplayTopic(TransactionalWriter):
    """One replay of a topic: opening it ends what an earlier one has begun."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        self.told = f"{topic}{POSITION}"
        with TopicAdmin(connection) as admin:
            if lacking := {topic, self.told} - {*admin.topics()}:
                raise TopicMissing(
                    f"Topic {min(lacking)!r} does not exist on {connection.called}.",
                    hint="the sink makes it once it is run: nothing has been sent yet.",
                )
            self.incarnation = f"{admin.topic_id(topic)} ".encode()
        super().__init__(connection, f"seamline.replays.{topic}", topic)

    def read_replayed(self) -> bytes | None:
        """Read how far the topic has been replayed; None for not at all."""
        last: bytes | None = None
        for message in read_topic(self.connection, self.told):
            last = message.value() if message.key() == REPLAYED else last
        if last is None or not last.startswith(self.incarnation):
            return None
        return last.removeprefix(self.incarnation)

    def list_partitions(self, topic: str) -> set[int]:
        """List the partitions of a topic; TopicMissing without it."""
        with TopicAdmin(self.connection) as admin:
            return {*admin.partitions(topic)}

    def read_from(self, starts: Mapping[int, int]) -> Iterator[Stored]:
        """Read the committed records of the topic, from given offsets to its end."""
        with TopicAdmin(self.connection) as admin:
            first, ends = admin.beginning_offsets(self.topic), admin.end_offsets(self.topic)
        begins = {part: max(first[part], starts.get(part, 0)) for part in ends}
        left = {part: at for part, at in begins.items() if at < ends[part]}
        return map(Stored.of, read_committed_records(self.connection, self.topic, left))

    def write(self, records: Iterable[Outgoing], replayed: bytes) -> None:
        """Produce records again, and write how far that has got, in one transaction."""
        self.commit_records(chain(records, (Outgoing(self.told, REPLAYED, self.incarnation + replayed),)))
