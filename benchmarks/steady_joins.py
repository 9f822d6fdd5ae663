"""Sends impressions and clicks at a steady rate, each with the time of its creation; a program of its own.

    python -m benchmarks.steady_joins BROKERS TOPIC RATE SECONDS

Four impressions, each with a key of 36 characters, are followed by a click of one of the last ten minutes. Prints a
line of JSON for each tick of ten milliseconds: [epoch seconds, clicks sent by then]; each makes one pair. ``-1`` ends
it.
"""

from __future__ import annotations

import random
import sys

from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS
from benchmarks.steady import each_tick, tell

CLICKED_WITHIN = 600


def main(argv: list[str]) -> int:
    """Send, on time."""
    brokers, topic, rate, seconds = argv[0], argv[1], int(argv[2]), float(argv[3])
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "1"})
    dice, sent, shown, clicked = random.Random(1), 0, 0, 0
    recent = rate * 4 // 5 * CLICKED_WITHIN
    for due, now in each_tick(producer, rate, seconds):
        at = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
        while sent < due:
            if sent % 5 < 4:
                name, value = "shown", f'{{"ad":"{shown:036d}","cost":{shown % 7},"at":"{at}"}}'
                shown += 1
            else:
                back = dice.randrange(min(shown, recent))
                name, value = "clicked", f'{{"ad":"{shown - 1 - back:036d}","at":"{at}"}}'
                clicked += 1
            producer.produce(f"{topic}.{name}", value.encode(), partition=sent % PARTITIONS)
            sent += 1
        tell(now, clicked)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
