"""Sends ad events at a steady rate, each with the time of its creation as event time; a program of its own.

    python -m benchmarks.steady BROKERS TOPIC RATE SECONDS

Prints a line of JSON for each tick of ten milliseconds: [epoch seconds, views sent by then]. ``-1`` views end it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS, POOL, TAIL, pool

TICK = 0.01


def each_tick(producer: Producer, rate: int, seconds: float) -> Iterator[tuple[int, datetime]]:
    """Give tick by tick how many events are due, and the time; whoever sends them prints what is sent by then."""
    began = time.time()
    while (passed := time.time() - began) < seconds:
        now = datetime.now(UTC)
        yield int(passed * rate), now
        producer.poll(0)
        time.sleep(TICK)
    producer.flush()
    tell(datetime.now(UTC), -1)


def tell(now: datetime, count: int) -> None:
    """Print how many have been sent by now."""
    print(json.dumps([now.timestamp(), count]), flush=True)


def main(argv: list[str]) -> int:
    """Send, on time."""
    brokers, topic, rate, seconds = argv[0], argv[1], int(argv[2]), float(argv[3])
    drawn = pool()
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "1"})
    sent = views = 0
    for due, now in each_tick(producer, rate, seconds):
        tail = TAIL % f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z".encode()
        while sent < due:
            index = sent % POOL
            producer.produce(topic, drawn.texts[index] + tail, partition=sent % PARTITIONS)
            views += drawn.campaigns[index] is not None
            sent += 1
        tell(now, views)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
