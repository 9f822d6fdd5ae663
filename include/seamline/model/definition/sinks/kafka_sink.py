"""A topic that has the newest row of each key and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.sinks.sink_base import Sink


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A compacted topic of a view's rows: a record per change, a tombstone for a row that is no longer there.

    The key is the row's keys and window, as JSON; the value is the row, as JSON. Records are written in transactions:
    a consumer that reads committed records sees each change once.
    """

    topic: str
    """The topic's name; it is created, with ``cleanup.policy=compact``, where there is none."""
    changes: bool = False
    """Whether the value has what the row was before as ``before`` beside ``after``; needs ``when="change"``."""
    connection: str = "kafka_default"
    """The id of the Airflow connection to Kafka."""

    kind: ClassVar[str] = "kafka"

    @property
    def place(self) -> str:
        return f"topic {self.topic} of {self.connection}"

    @property
    def form(self) -> str:
        return "changes" if self.changes else self.when

    @property
    def wants_olds(self) -> bool:
        return self.changes
