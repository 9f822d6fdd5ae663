"""What is sent: unique (producer, sequence) pairs, late ones and bad ones among them, drawn from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter

DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name={name!r},
    source=KafkaSource(
        topic={topic!r},
        schema="producer STRING NOT NULL, seq BIGINT NOT NULL, at TIMESTAMP",
        event_time="at",
        event_id=["producer", "seq"],
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
        max_future="1 day",
    ),
    rules=[Rule("counted from zero", "seq >= 0")],
    views=[View("by_producer", keys=["producer"], window=Tumbling("1 hour"),
                measures={{"n": count(), "total": sum("seq"), "low": min("seq"), "high": max("seq")}})],
    stream=Stream(trigger={trigger!r}, max_offsets_per_epoch={limit}, edge_epochs=5),
    batch=Batch("1 day", "2024-01-01"),
)
"""
FIRST = datetime(2024, 1, 5, tzinfo=UTC)
STEP = timedelta(seconds=2)
LATE, BAD = 0.05, 0.02
NO_TIME = "no event time"

Place = tuple[str, int, int]
"""Topic id, partition and offset."""


def definition(name: str, topic: str, *, trigger: str = "100 milliseconds", limit: int = 300) -> str:
    """Write the pipeline's file."""
    return DEFINITION.format(name=name, topic=topic, trigger=trigger, limit=limit)


@dataclass(frozen=True)
class Sent:
    """One record as it was sent; without ``at`` it is one that must be refused."""

    producer: str
    sequence: int
    at: datetime | None
    value: bytes | None

    @property
    def good(self) -> bool:
        """Return whether the master must have it; else the quarantine."""
        return self.at is not None


Log = dict[Place, Sent]
"""Every record that Kafka has acknowledged, by its place: the truth."""


@dataclass
class Workload:
    """The records of one trial in the order in which they are sent; the same seed gives the same ones."""

    seed: int
    producers: int = 6
    partitions: int = 3
    sequences: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.count = 0

    def take(self, count: int) -> Iterator[tuple[int, Sent]]:
        """Return so many records, each with its partition."""
        for _ in range(count):
            producer = self.chance.randrange(self.producers)
            yield producer % self.partitions, self.record(f"p{producer}")

    def record(self, producer: str) -> Sent:
        """Make the next record of a producer: a good one has the next of its sequence."""
        self.count += 1
        now = FIRST + self.count * STEP
        if self.chance.random() < BAD:
            return Sent(producer, -1, None, self.chance.choice(bad(producer, now)))
        if self.chance.random() < LATE:
            now -= timedelta(minutes=self.chance.randrange(1, 4 * 24 * 60))
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        return Sent(producer, sequence, now, encoded(producer, sequence, now.isoformat()))


def encoded(producer: object, sequence: object, at: object, **more: object) -> bytes:
    """Write a record's value."""
    return json.dumps({"producer": producer, "seq": sequence, "at": at, **more}).encode()


def bad(producer: str, now: datetime) -> Sequence[bytes | None]:
    """List one record of every kind that must be refused, whatever else it may break."""
    at = now.isoformat()
    whole = encoded(producer, 1, at)
    return [
        None,
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{not json",
        whole[:-9],
        whole.replace(producer.encode(), b"\xc3\x28"),
        b"[" * 10_000,
        b'{"producer": ' + b"[" * 10_000,
        b'{"producer":"' + b"A" * 1_000_000,
        encoded(producer, None, at),
        encoded(None, 1, at),
        encoded(producer, "one", at),
        encoded(producer, float("nan"), at),
        whole.replace(b'"seq": 1', b'"seq": 1e400'),
        whole.replace(b'"seq": 1', b'"seq": 99999999999999999999'),
        encoded(producer, -1, at),
        encoded(producer, 1, None),
        encoded(producer, 1, "yesterday"),
        encoded(producer, 1, "2999-01-01T00:00:00Z"),
        encoded(producer, 1, "2023-01-01T00:00:00Z"),
    ]


def writer(connection: KafkaConnection, topic_id: str, log: Log) -> RecordWriter:
    """Open a writer that notes where Kafka put each record of one topic."""

    def delivered(token: object, partition: int, offset: int) -> None:
        assert isinstance(token, Sent)
        log[topic_id, partition, offset] = token

    return RecordWriter(connection, on_delivered=delivered)


def write(out: RecordWriter, topic: str, records: Iterable[tuple[int, Sent]]) -> None:
    """Send records, each to its partition; a tombstone needs a key."""
    for partition, record in records:
        out.send(topic, key=record.producer.encode(), value=record.value, partition=partition, token=record)
    out.flush()


def send(
    connection: KafkaConnection, topic: str, topic_id: str, work: Workload, count: int, log: Log
) -> None:
    """Send so many records and note where Kafka put each."""
    with writer(connection, topic_id, log) as out:
        write(out, topic, work.take(count))
