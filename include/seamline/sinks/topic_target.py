"""What all targets that are topics have in common: the position beside the topic, and a topic of nobody else's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.kafka_reading import CLEARING, EMPTY

T = TypeVar("T")


class TopicTarget:
    """A topic that a sink writes to."""

    def __init__(self, sink: KafkaSink | DeadLetterSink, pipeline: str, connection: KafkaConnection) -> None:
        self.declared, self.connection, self.owner = sink, connection, f"{pipeline}.{sink.id}"
        self.opened: RowTopic | None = None

    @property
    def topic(self) -> RowTopic:
        """The topic, which is opened when it is first needed: that fences earlier writers."""
        if self.opened is None:
            self.opened = self.open_topic()
        return self.opened

    def open_topic(self) -> RowTopic:
        """Open the topic, made if it is not there."""
        return RowTopic(self.connection, self.declared.topic, self.owner)

    def is_taken(self) -> bool:
        """Return whether the topic has anything that a clearing would take out."""
        return self.topic.has_rows()

    def clear(self) -> None:
        """Take everything out of the topic."""
        raise NotImplementedError

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers, end a clearing that was cut short, and return what the topic holds.

        SetupError where it has records of somebody else.
        """
        found = self.topic.read_position()
        if found == CLEARING:
            self.clear()
            return None
        if found is None and self.is_taken():
            raise SetupError(
                f"Topic {self.declared.topic!r} has records, and no sink's position beside them.",
                hint="name an empty topic; or, if its records may all be deleted, run "
                f"`seamline sinks resend PIPELINE {self.declared.id}`.",
            )
        return None if found in (None, EMPTY) else SinkPosition.from_json(found)

    def close(self) -> None:
        """Let go of the connection."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None


def pass_half(records: Iterable[T]) -> Iterator[T]:
    """Pass records on; a test may end this process after the first."""
    rest = iter(records)
    yield from islice(rest, 1)
    hit_failpoint("sink_half")
    yield from rest
