"""What is asked of a topic's first records, where their times are none, or no instant that Python has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from seamline.kafka import consumers
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.first_records import read_first_records
from seamline.kafka.topic_ends import EARLIEST, LATEST, oldest_from
from seamline.model.protocol.log_tail import Tail, hash_record_value

HERE = KafkaConnection("127.0.0.1:1")
PLACES = {("orders", 0): 7, ("orders", 1): 8}
Give = Callable[..., None]


class Consumer:
    """A client that gives a record of each partition, with the timestamp that it has in Kafka's log."""

    def __init__(self, times: tuple[int | None, ...]) -> None:
        self.times = times
        self._fetcher = SimpleNamespace(PartitionRecords=None)

    def poll(self, *_: object, **__: object) -> dict[TopicPartition, list[Any]]:
        return {
            TopicPartition(topic, part): [SimpleNamespace(offset=at, timestamp=self.times[part], value=b"v")]
            for (topic, part), at in PLACES.items()
        }

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    def give(*times: int | None) -> None:
        monkeypatch.setattr(consumers, "open_client", lambda *_, **__: Consumer(times))

    return give


def test_a_record_of_before_timestamps_is_the_one_that_was_read(give: Give) -> None:
    """Spark gives it one all the same, a millisecond before 1970: each start would stop there."""
    give(None, 5)
    value = hash_record_value(b"v")
    assert read_first_records(HERE, PLACES) == {
        ("orders", 0): Tail(7, -1, value),
        ("orders", 1): Tail(8, 5, value),
    }


@pytest.mark.parametrize(
    ("times", "oldest"),
    [
        ((1_000, 2_000), datetime.fromtimestamp(1, UTC)),
        ((1_700_000_000_000_000, 2_000), datetime.fromtimestamp(2, UTC)),
        ((1_700_000_000_000_000, 1 << 62), LATEST),
        ((-(1 << 62), 2_000), EARLIEST),
        ((None, 2_000), None),
        ((-1, 2_000), None),
    ],
    ids=["two", "microseconds", "all far ahead", "far behind", "none", "said to be none"],
)
def test_the_oldest_is_told_whatever_a_producer_has_said(
    give: Give, times: tuple[int | None, ...], oldest: datetime | None
) -> None:
    """A producer that counts in microseconds is in the year 55840, and the lag is asked for all the same."""
    give(*times)
    assert oldest_from(HERE, PLACES) == oldest
