"""Sends rows of many users at a steady rate, each with the time of its creation; a program of its own.

    python -m benchmarks.steady_users BROKERS TOPIC RATE SECONDS

``BENCH_USERS`` says of how many users [100,000], ``BENCH_HOT`` which share of the rows one of them has [0]. Prints a
line of JSON for each tick of ten milliseconds: [epoch seconds, rows sent by then]. ``-1`` ends it.
"""

from __future__ import annotations

import os
import random
import sys

from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS
from benchmarks.steady import each_tick, tell


def main(argv: list[str]) -> int:
    """Send, on time."""
    brokers, topic, rate, seconds = argv[0], argv[1], int(argv[2]), float(argv[3])
    users, hot = int(os.environ.get("BENCH_USERS", "100000")), float(os.environ.get("BENCH_HOT", "0"))
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "1"})
    dice, sent = random.Random(1), 0
    for due, now in each_tick(producer, rate, seconds):
        at = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
        while sent < due:
            user = 0 if dice.random() < hot else dice.randrange(users)
            producer.produce(topic, f'{{"user":{user},"at":"{at}"}}'.encode(), partition=sent % PARTITIONS)
            sent += 1
        tell(now, sent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
