"""Sending records into a topic at their own pace, so that none is lost when it is interrupted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import Delivered, RecordWriter

Progress = Callable[[int, datetime], None]
"""Called with the number of records sent and the sender's clock."""


class Sendable(Protocol):
    """One record to send when the sender's clock shows ``at_ms``, which is also its Kafka timestamp."""

    @property
    def at_ms(self) -> int: ...
    @property
    def partition(self) -> int | None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def kind(self) -> str: ...


Item = TypeVar("Item", bound=Sendable)


def send_records(
    connection: KafkaConnection,
    topic: str,
    items: Iterable[Sendable],
    *,
    speedup: float | None = None,
    on_delivered: Delivered | None = None,
    on_progress: Progress | None = None,
) -> Counter[str]:
    """Send records in their order and return their number by kind; one that names a ``topic`` goes to that.

    Their clock runs ``speedup`` times as fast as ours; without it they go as fast as Kafka takes them. An
    interrupt flushes what was sent first.
    """
    kinds: Counter[str] = Counter()
    writer = RecordWriter(connection, on_delivered=on_delivered)
    try:
        _hand_over(writer, topic, pace_items(items, speedup), kinds, on_progress)
    finally:
        try:
            writer.flush()
        finally:
            writer.close()
    return kinds


def pace_items(items: Iterable[Item], speedup: float | None) -> Iterator[Item]:
    """Hold each item back until its time has come; when behind, hold nothing back."""
    first_ms: int | None = None
    began = time.monotonic()
    for item in items:
        first_ms = item.at_ms if first_ms is None else first_ms
        if speedup:
            ahead = (item.at_ms - first_ms) / 1000 / speedup - (time.monotonic() - began)
            if ahead > 0.02:
                time.sleep(ahead)
        yield item


def _hand_over(
    writer: RecordWriter,
    topic: str,
    items: Iterable[Sendable],
    kinds: Counter[str],
    on_progress: Progress | None,
) -> None:
    told = time.monotonic()
    for number, item in enumerate(items, start=1):
        writer.send(
            getattr(item, "topic", "") or topic,
            key=item.key,
            value=item.value,
            partition=item.partition,
            timestamp_ms=item.at_ms,
            token=item,
        )
        kinds[item.kind] += 1
        if on_progress is not None and number & 0xFF == 0 and time.monotonic() - told >= 0.5:
            told = time.monotonic()
            on_progress(number, datetime.fromtimestamp(item.at_ms / 1000, UTC))
