"""Rows that are larger than a topic takes by default: the topic decides, not the client."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from seamline.kafka import row_topic
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic


class Admin:
    """A broker that has both topics."""

    def __init__(self, _: object) -> None: ...

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topics(self) -> list[str]:
        """Return the topics."""
        return ["out", "out.position"]

    def topic_id(self, _: str) -> str:
        """Return an id."""
        return "id"


class Writer:
    """A client that needs no broker: without transactions."""

    def __init__(self, settings: dict[str, Any]) -> None:
        alone = {name: value for name, value in settings.items() if not name.startswith("transaction")}
        self.real = Producer(alone)

    def init_transactions(self, _: float) -> None:
        """Do nothing."""


def test_a_large_row_is_refused_by_the_topic_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says to raise max.message.bytes of the topic; the client's own limit was a megabyte."""
    monkeypatch.setattr(row_topic, "TopicAdmin", Admin)
    monkeypatch.setattr(row_topic, "Producer", Writer)
    topic = RowTopic(KafkaConnection("127.0.0.1:1"), "out")
    writer: Any = topic.producer
    writer.real.produce("out", b"x" * 3_000_000, b"key")
    writer.real.purge()
    writer.real.flush(1.0)
