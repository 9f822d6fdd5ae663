"""A topic's writer without a broker: rows that are large, and rows of a topic that was given more partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from seamline import KafkaSink
from seamline.kafka import row_topic
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.sinks.kafka_target import KafkaTarget


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


class Noting:
    """A client that notes which records of which partitions it is given."""

    def __init__(self, _: object) -> None:
        self.given: list[tuple[object, ...]] = []

    def produce(self, *record: object, on_delivery: object) -> None:
        """Note a record."""
        self.given.append(record)

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


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


def test_a_record_is_deleted_in_the_partition_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where partitions were added its key belongs to another: a tombstone there would let it stay for ever."""
    monkeypatch.setattr(row_topic, "TopicAdmin", Admin)
    monkeypatch.setattr(row_topic, "Producer", Noting)
    target = KafkaTarget(KafkaSink("sales", topic="out"), KafkaConnection("127.0.0.1:1"))

    class Found:
        """A record in partition 3."""

        key, value, partition = (lambda _: b"k"), (lambda _: b"v"), (lambda _: 3)

    monkeypatch.setattr(RowTopic, "read_topic", lambda *_: iter([Found()]))
    target.clear()
    producer: Any = target.topic.producer
    assert [each for each in producer.given if each[0] == "out"] == [("out", None, b"k", 3)]
