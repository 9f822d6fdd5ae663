"""What Flink has counted, as a reader of its topic knows it: the newest value of each key."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from benchmarks.ads import PARTITIONS
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection


class Counts:
    """Views per campaign and window, read on from look to look."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        self.connection, self.topic = connection, topic
        self.newest: dict[tuple[int, int | str], int] = {}
        self.views = self.messages = 0
        given = {"bootstrap.servers": connection.brokers, "group.id": topic, "enable.auto.commit": False}
        self.consumer = Consumer(given)
        self.consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])

    def look(self) -> int:
        """Read what has come, and give how many views are counted by now."""
        while messages := self.consumer.consume(10_000, timeout=0):
            for message in messages:
                if error := message.error():
                    raise KafkaException(error)
                self.take(message.value() or b"")
        return self.views

    def take(self, value: bytes) -> None:
        """Let a value take the place of the one before."""
        row = json.loads(value)
        key = row["campaign"], row["window_start"]
        self.views += row["views"] - self.newest.get(key, 0)
        self.newest[key] = row["views"]
        self.messages += 1

    def everything(self, patience: float) -> dict[tuple[int, datetime], int]:
        """Read to the end there is now, and give all that is counted."""
        with TopicAdmin(self.connection) as admin:
            there = sum(admin.end_offsets(self.topic).values())
        until = time.monotonic() + patience
        while self.messages < there:
            self.look()
            if time.monotonic() > until:
                raise TimeoutError(f"Only {self.messages:,} of {there:,} counts were read.")
            time.sleep(0.01)
        return {(campaign, moment(window)): views for (campaign, window), views in self.newest.items()}

    def close(self) -> None:
        """Leave the broker."""
        self.consumer.close()


def moment(window: int | str) -> datetime:
    """Read a window's begin: epoch seconds, or text."""
    return datetime.fromisoformat(window) if isinstance(window, str) else datetime.fromtimestamp(window, UTC)
