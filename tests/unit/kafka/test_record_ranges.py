"""A few records that this process reads itself: where it cannot, for whatever reason, Spark does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from seamline.kafka import record_ranges
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.record_ranges import RangeReader

PLACE = ("t", 0)


class Consumer:
    """A client that has three records of a partition, and does what a test says."""

    def __init__(self, polls: Any = None, positions: Any = None) -> None:
        self.polls, self.positions, self.closed, self.at = polls, positions, False, 0

    def assign(self, places: Any) -> None:
        """Take places."""

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Go there."""
        self.at = offset

    def poll(self, timeout_ms: int) -> Any:
        """Return a record."""
        if isinstance(self.polls, Exception):
            raise self.polls
        self.at += 1
        record = SimpleNamespace(
            key=None, value=b"v", topic="t", partition=0, offset=self.at - 1, timestamp=5, headers=[]
        )
        return {TopicPartition("t", 0): [record]}

    def position(self, place: TopicPartition, timeout_ms: int | None = None) -> int | None:
        """Say where it is."""
        assert timeout_ms, "a change of leaders would hold the driver up for as long as it takes"
        if isinstance(self.positions, Exception):
            raise self.positions
        return self.at if self.positions is None else None

    def pause(self, place: TopicPartition) -> None:
        """Read no more of it."""

    def unsubscribe(self) -> None:
        """Read nothing."""

    def close(self, autocommit: bool = True) -> None:
        """End."""
        self.closed = True


def reader(monkeypatch: pytest.MonkeyPatch, consumer: Consumer) -> RangeReader:
    """Return a reader with that client."""
    monkeypatch.setattr(record_ranges, "SOON", 0.05)
    made = RangeReader(KafkaConnection("nobody:1"))
    monkeypatch.setattr(made, "open", lambda: consumer)
    return made


def test_records_are_read_up_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of those behind it, and the client stays open."""
    consumer = Consumer()
    found = reader(monkeypatch, consumer).read({PLACE: (3, 6)})
    assert found is not None
    assert found["offset"].to_pylist() == [3, 4, 5]
    assert not consumer.closed


@pytest.mark.parametrize(
    "consumer",
    [
        Consumer(polls=ValueError("a decompressor's own error")),
        Consumer(positions=KafkaTimeoutError()),
        Consumer(positions="none"),
    ],
    ids=["broken records", "no position in time", "no position"],
)
def test_what_cannot_be_read_soon_is_left_to_spark(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer
) -> None:
    """It says what is wrong, if anything is; the next reading has a client of its own."""
    made = reader(monkeypatch, consumer)
    assert made.read({PLACE: (0, 3)}) is None
    assert made.consumer is None
    assert consumer.closed
