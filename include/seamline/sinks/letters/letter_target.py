"""The topic of a sink of dead letters: its records and the position are one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.row_topic import DELETED, Letter, RowTopic
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.errors import KafkaRefused, SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.kafka_reading import CLEARING, EMPTY
from seamline.sinks.topic_target import TopicTarget, pass_half

POLICY = "cleanup.policy"


class LetterTarget(TopicTarget):
    """The topic of a DeadLetterSink, to which records are added."""

    def open_topic(self) -> RowTopic:
        opened = RowTopic(self.connection, self.declared.topic, self.owner, DELETED)
        if "compact" in self.read_policy():
            opened.close()
            raise SetupError(
                f"Topic {self.declared.topic!r} is compacted, and would lose all but the last record of each key.",
                hint=f"set {POLICY}=delete for it, or name another topic.",
            )
        return opened

    def read_policy(self) -> str:
        """Read how the topic lets go of records; empty without the right to see it."""
        with suppress(KafkaRefused), TopicAdmin(self.connection) as admin:
            return admin.setting(self.declared.topic, POLICY)
        return ""

    def is_taken(self) -> bool:
        return not self.topic.is_empty()

    def add(self, letters: Iterable[Letter], position: SinkPosition) -> None:
        """Add records, and write the position, in one transaction."""
        hit_failpoint("sink_begun")
        self.topic.add(pass_half(letters), position.to_json().encode())
        hit_failpoint("sink_written")

    def clear(self) -> None:
        """Delete all records, as retention does; the position says so before and after."""
        self.topic.add((), CLEARING)
        hit_failpoint("sink_clearing")
        self.topic.empty()
        self.topic.add((), EMPTY)


def open_letters(sink: DeadLetterSink, pipeline: str, env: Mapping[str, str] = os.environ) -> LetterTarget:
    """Open the topic of a sink; ConnectionMissing without its connection."""
    return LetterTarget(sink, pipeline, read_airflow_connection(sink.connection, env))
