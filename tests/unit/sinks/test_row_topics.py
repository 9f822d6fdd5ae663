"""A topic's writer without a broker: rows that are large, and rows of a topic that was given more partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.unit.shop import sales_pipeline

from seamline import KafkaSink
from seamline.kafka import row_topic
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.row_topic import RowTopic
from seamline.kafka.sending import transactional_writer
from seamline.model.errors import SetupError
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
    monkeypatch.setattr(transactional_writer, "Producer", Writer)
    monkeypatch.setattr(RowTopic, "read_last", lambda _: None)
    topic = RowTopic(KafkaConnection("127.0.0.1:1"), "out", "shop.sales_kafka")
    writer: Any = topic.producer
    writer.real.produce("out", b"x" * 3_000_000, b"key")
    writer.real.purge()
    writer.real.flush(1.0)


def test_a_record_is_deleted_in_the_partition_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where partitions were added its key belongs to another: a tombstone there would let it stay for ever."""
    monkeypatch.setattr(row_topic, "TopicAdmin", Admin)
    monkeypatch.setattr(transactional_writer, "Producer", Noting)
    monkeypatch.setattr(RowTopic, "read_last", lambda _: None)
    target = KafkaTarget(
        KafkaSink("sales", topic="out"), sales_pipeline().views[0], KafkaConnection("127.0.0.1:1")
    )

    class Found:
        """A record in partition 3."""

        key, value, partition = (lambda _: b"k"), (lambda _: b"v"), (lambda _: 3)

    monkeypatch.setattr(RowTopic, "read_topic", lambda *_: iter([Found()]))
    target.clear()
    producer: Any = target.topic.producer
    assert [each for each in producer.given if each[0] == "out"] == [("out", None, b"k", 3)]


@pytest.mark.parametrize(
    ("told", "position"),
    [
        (b"id shop.sales_kafka empty", b"empty"),
        (b'id shop.sales_kafka {"view": "a b"}', b'{"view": "a b"}'),
        (b"another shop.other empty", None),
        (None, None),
    ],
)
def test_a_position_is_of_this_topic_and_this_sink(
    monkeypatch: pytest.MonkeyPatch, told: bytes | None, position: bytes | None
) -> None:
    """What was told of a topic that was deleted is of no account, whoever told it."""
    monkeypatch.setattr(row_topic, "TopicAdmin", Admin)
    monkeypatch.setattr(transactional_writer, "Producer", Noting)
    monkeypatch.setattr(RowTopic, "read_last", lambda _: told)
    topic = RowTopic(KafkaConnection("127.0.0.1:1"), "out", "shop.sales_kafka")
    assert topic.read_position() == position
    topic.write((), b"next")
    producer: Any = topic.producer
    assert [each[1] for each in producer.given] == [b"id shop.sales_kafka next"]


def test_a_topic_of_another_sink_is_refused_before_that_is_fenced_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two pipelines that name one topic would delete each other's rows, or end each other's transactions."""
    monkeypatch.setattr(row_topic, "TopicAdmin", Admin)
    monkeypatch.setattr(RowTopic, "read_last", lambda _: b"id shop.other empty")

    def refuse(_: object) -> None:
        pytest.fail("a writer was opened")

    monkeypatch.setattr(transactional_writer, "Producer", refuse)
    target = KafkaTarget(
        KafkaSink("sales", topic="out"), sales_pipeline().views[0], KafkaConnection("127.0.0.1:1")
    )
    with pytest.raises(SetupError, match="is kept by shop.other"):
        target.take_over()
    with pytest.raises(SetupError, match="is kept by shop.other"):
        target.clear()
