"""A topic of records that are in no answer, or came late: each as it was read, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.sinks.sink_base import AnySink


@dataclass(frozen=True)
class DeadLetterSink(AnySink):
    """A topic that each refused record of a pipeline is added to, or each late one, or each of a side.

    A record has the key, the value and the headers that were read, and headers that say why it is there and where it
    was read. Records are written in transactions: a consumer that reads committed records sees each once.
    """

    of: str
    """What is sent: "rejected" for refused records, "late" for those behind the watermark, or the name of a side."""
    topic: str
    """The topic's name; it is created, with ``cleanup.policy=delete``, where there is none."""
    connection: str = "kafka_default"
    """The id of the Airflow connection to Kafka."""

    kind: ClassVar[str] = "dead_letters"

    @property
    def sends(self) -> str:
        return self.of

    @property
    def place(self) -> str:
        return f"topic {self.topic} of {self.connection}"

    @property
    def form(self) -> str:
        return self.of
