"""A topic that a writer keeps, read by somebody else: nobody is fenced off, and nothing is created."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import POSITION, RowTopic

PlacedRecord = tuple[bytes, int, bytes | None]
"""A key, the partition in which its record is, and the value; None for a tombstone."""


class RowTopicReader(RowTopic):
    """One topic and its position, without the right to write: it has no producer."""

    def __init__(self, connection: KafkaConnection, topic: str, owner: str) -> None:
        self.connection, self.topic, self.told, self.owner = connection, topic, f"{topic}{POSITION}", owner
        with TopicAdmin(connection) as admin:
            names = admin.topics()
            self.there = topic in names and self.told in names
            self.incarnation = f"{admin.topic_id(topic)} ".encode() if self.there else b""

    def read_position(self) -> bytes | None:
        """Read the last position that was committed; None without one, or without the topics."""
        return super().read_position() if self.there else None

    def read_records(self) -> Iterator[PlacedRecord]:
        """Read the committed records up to where the topic ends now; one without a key counts as of an empty one."""
        for message in self.read_topic(self.topic):
            yield message.key() or b"", message.partition() or 0, message.value()

    def close(self) -> None:
        """Do nothing: each reading closes its own client."""
