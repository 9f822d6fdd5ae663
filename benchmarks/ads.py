"""Ad events of the Yahoo streaming benchmark: 236 bytes of JSON, a third are views, 100 campaigns of ten ads.

As many different beginnings as ``POOL`` are drawn once and go round, each with an event time of its own: a generator
that drew every event would be measured with the systems it feeds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = 4
POOL = 200_000
USERS, PAGES = 20_000, 5_000
BYTES = 236
PER_SECOND = 20_000
"""Events in a second of event time."""
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
PER_CAMPAIGN = 10
ADS = 1_000
WINDOW = 10
KEYS = (["campaign"], ["ad_id"], ["ad_type"], ["campaign", "ad_type"])
WINDOWS = ("10 seconds", "20 seconds", "30 seconds", "1 minute", "5 minutes")


@dataclass(frozen=True)
class Pool:
    """Beginnings of events, without their time; ``campaigns`` has the campaign of each view, else None."""

    texts: tuple[bytes, ...]
    campaigns: tuple[int | None, ...]


def pool(seed: int = 1) -> Pool:
    """Draw the beginnings of events."""
    dice = random.Random(seed)
    texts, campaigns = [], []
    for _ in range(POOL):
        ad, kind = dice.randrange(ADS), dice.choice(("view", "click", "purchase"))
        event = {
            "user_id": f"{dice.randrange(USERS):036d}",
            "page_id": f"{dice.randrange(PAGES):036d}",
            "ad_id": ad,
            "ad_type": dice.choice(("banner", "modal", "sponsored-search", "mail", "mobile")),
            "event_type": kind,
            "ip_address": f"198.51.100.{dice.randrange(256)}",
        }
        text = json.dumps(event, separators=(",", ":"))[:-1]
        room = BYTES - len(text) - len(TAIL % b"2026-01-05T00:00:00.000Z")
        texts.append(f'{text[:-1]}{"0" * room}"'.encode())
        campaigns.append(ad // PER_CAMPAIGN if kind == "view" else None)
    return Pool(tuple(texts), tuple(campaigns))


TAIL = b',"event_time":"%s"}'


def clock(begin: datetime) -> Iterator[bytes]:
    """Return the text of one millisecond after another."""
    at = begin
    while True:
        stem = f"{at:%Y-%m-%dT%H:%M:%S}".encode()
        for millisecond in range(1000):
            yield b"%s.%03dZ" % (stem, millisecond)
        at += timedelta(seconds=1)


def preload(connection: KafkaConnection, topic: str, count: int) -> dict[tuple[int, datetime], int]:
    """Write so many events to a new topic; give how many views each campaign and window should count."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(topic, PARTITIONS)
    drawn = pool()
    producer = bulk_producer(connection)
    counts: Counter[tuple[int, int]] = Counter()
    moments = clock(BEGIN)
    per_millisecond = PER_SECOND // 1000
    for number in range(count):
        if number % per_millisecond == 0:
            moment = next(moments)
        index = number % POOL
        campaign = drawn.campaigns[index]
        if campaign is not None:
            counts[campaign, number // (PER_SECOND * WINDOW)] += 1
        produce(producer, topic, drawn.texts[index] + TAIL % moment, number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return {
        (campaign, BEGIN + timedelta(seconds=WINDOW * window)): views
        for (campaign, window), views in counts.items()
    }


def bulk_producer(connection: KafkaConnection) -> Producer:
    """Open a producer that sends as much as it can."""
    return Producer(
        {
            "bootstrap.servers": connection.brokers,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "acks": "1",
        }
    )


def produce(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    """Hand a record to the client, waiting while its buffer is full."""
    while True:
        try:
            producer.produce(topic, value, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)


def definition(topic: str, *, epoch: int, trigger: str = "0 seconds", views: int = 1) -> str:
    """Return the text of the shipped example over another topic, with so many views, the first of them its own."""
    text = (ROOT / "include" / "examples" / "ad_campaigns.py").read_text()
    text = text.replace('topic="examples.ad_events"', f'topic="{topic}"')
    text = text.replace(
        'Stream(trigger="1 second"', f'Stream(trigger="{trigger}", max_offsets_per_epoch={epoch}'
    )
    begin = text.index("    ],\n", text.index("    views=["))
    more = "".join(
        f"        View('views_{number}', keys={KEYS[number % len(KEYS)]}, "
        f"window=Tumbling('{WINDOWS[number // len(KEYS) % len(WINDOWS)]}'), "
        "measures={'views': count(), 'last_view': max('event_time')}),\n"
        for number in range(1, views)
    )
    return text[:begin].rstrip() + ",\n" + more + text[begin:]


def ads_json(path: Path) -> Path:
    """Write the table of ads for peers: one JSON object a line."""
    path.write_text("".join(f'{{"ad_id":{ad},"campaign":{ad // PER_CAMPAIGN}}}\n' for ad in range(ADS)))
    return path
