"""What is asked of a generator, and the records it makes: pure functions of a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from seamline.model.errors import BadRange
from seamline.model.time.intervals import EPOCH

MILLISECOND = timedelta(milliseconds=1)
SECOND, MINUTE = 1000, 60_000


@dataclass(frozen=True)
class Load:
    """The records to generate; the same load makes the same bytes.

    Raises BadRange for a rate or a count that is not positive.
    """

    seed: int
    """Of the random numbers."""
    rate: float
    """Records in each second of their own time."""
    count: int
    """Records in all."""
    start: datetime
    """The time of the first record."""

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.count <= 0:
            raise BadRange(
                f"{self.count} records at {self.rate:g} per second leave nothing to send.",
                hint="pass a positive --rate and a positive --count or --seconds.",
            )

    @property
    def start_ms(self) -> int:
        """The first record's time, in milliseconds since 1970."""
        return (self.start - EPOCH) // MILLISECOND

    def ticks(self) -> Iterator[tuple[int, int]]:
        """Yield each record's number, from 0, and when it is sent, in milliseconds since 1970."""
        for number in range(self.count):
            yield number, self.start_ms + int(number * 1000 / self.rate)

    def seeded_random(self, name: str) -> random.Random:
        """Make the dice of one generator."""
        return random.Random(f"{name} {self.seed}")

    def event_ms(self, at_ms: int, lag_ms: int) -> int:
        """Return the time of an event that was sent ``lag_ms`` after it; nothing happens before the start."""
        return at_ms - lag_ms if at_ms - lag_ms >= self.start_ms else at_ms


@dataclass(frozen=True, slots=True)
class Record:
    """One record to send."""

    at_ms: int
    """When to send it, in milliseconds since 1970; also its Kafka timestamp."""
    key: bytes | None
    """None for a record without a key."""
    value: bytes | None
    """None for a tombstone."""
    kind: str = "event"
    """``event``, ``late``, ``duplicate``, or ``bad:REASON``, with the reason that quarantine will state."""
    partition: int | None = None
    """None leaves the choice to the producer."""
    topic: str = ""
    """Where to send it; "" for the generator's first topic."""


@dataclass(frozen=True)
class Generator:
    """The records of one shipped pipeline."""

    topic: str
    """The topic of records that name none."""
    records: Callable[[Load], Iterator[Record]]
    """Makes the records of a load, in the order in which they are sent."""
    more: tuple[str, ...] = ()
    """The other topics for which they are made."""

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics for which records are made."""
        return (self.topic, *self.more)


def instant(ms: int) -> str:
    """Format an instant as ISO 8601 in UTC: 2026-03-01T09:00:00.250Z."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def text(fields: dict[str, Any]) -> bytes:
    """Write a record's fields as one line of JSON."""
    return json.dumps(fields, separators=(",", ":")).encode()
