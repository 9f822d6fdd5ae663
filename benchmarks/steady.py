"""Sends ad events at a steady rate, each with the time of its creation as event time; a program of its own.

    python -m benchmarks.steady BROKERS TOPIC RATE SECONDS

Prints a line of JSON for each tick of ten milliseconds: [epoch seconds, views sent by then]. ``-1`` views end it.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime

from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS, POOL, TAIL, pool

TICK = 0.01


def main(argv: list[str]) -> int:
    """Send, on time."""
    brokers, topic, rate, seconds = argv[0], argv[1], int(argv[2]), float(argv[3])
    drawn = pool()
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "1"})
    began, sent, views = time.time(), 0, 0
    while (passed := time.time() - began) < seconds:
        due = int(passed * rate)
        now = datetime.now(UTC)
        tail = TAIL % f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z".encode()
        while sent < due:
            index = sent % POOL
            producer.produce(topic, drawn.texts[index] + tail, partition=sent % PARTITIONS)
            views += drawn.campaigns[index] is not None
            sent += 1
        producer.poll(0)
        print(json.dumps([now.timestamp(), views]), flush=True)
        time.sleep(TICK)
    producer.flush()
    print(json.dumps([time.time(), -1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
