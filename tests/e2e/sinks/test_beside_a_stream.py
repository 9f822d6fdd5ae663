"""A sink beside a real stream: its supervisor runs it, and it sends what is served, without a word from anybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.kafka.transactions import read_committed_tail

pytestmark = pytest.mark.faults
TOPIC, OUT = "sunk.orders", "sunk.by_shop"
DEFINITION = """
from seamline import *

sunk = Pipeline(
    name="sunk",
    source=KafkaSource(
        topic="sunk.orders",
        schema="id BIGINT NOT NULL, shop STRING, amount BIGINT, at TIMESTAMP NOT NULL",
        event_time="at",
        watermark=Watermark("1 minute", idle_after="2 seconds"),
    ),
    views=[View("by_shop", keys=["shop"], window=Tumbling("1 hour"), measures={"n": count(), "total": sum("amount")})],
    sinks=[KafkaSink("by_shop", topic="sunk.by_shop")],
    stream=Stream(trigger="100 milliseconds", serve_every="500 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""


@pytest.fixture
def commands(tmp_path: Path, kafka: KafkaConnection) -> Iterator[Commands]:
    """A topic of orders, and what runs the commands of a pipeline that counts them."""
    made = Commands(tmp_path, kafka, sunk=DEFINITION)
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 1)
        yield made
        end_all(made.home)
        for name in {TOPIC, OUT, f"{OUT}.position"} & {*admin.topics()}:
            admin.delete_topic(name)


def send(kafka: KafkaConnection, *orders: tuple[int, str, int]) -> None:
    """Send orders: id, shop, amount."""
    with RecordWriter(kafka) as writer:
        for id, shop, amount in orders:
            value = {"id": id, "shop": shop, "amount": amount, "at": f"2026-01-05T08:{id:02}:00Z"}
            writer.send(TOPIC, value=json.dumps(value).encode(), partition=0)


def read_totals(kafka: KafkaConnection) -> dict[str, Any]:
    """Read the newest total of each shop, as a consumer of committed records does."""
    with TopicAdmin(kafka) as admin:
        if OUT not in admin.topics():
            return {}
    rows = [json.loads(value) for value in read_committed_tail(kafka, OUT, {})]
    return {row["shop"]: row["total"] for row in rows}


def test_what_is_served_is_sent(commands: Commands, kafka: KafkaConnection) -> None:
    """From the first order on, as long as the stream runs, and the process ends with it."""
    send(kafka, (1, "a", 10), (2, "b", 5))
    commands.seamline("stream", "start", "sunk", "--here")
    eventually("the first totals to be sent", lambda: read_totals(kafka) == {"a": 10, "b": 5})
    send(kafka, (3, "a", 7))
    eventually("a change to be sent", lambda: read_totals(kafka) == {"a": 17, "b": 5})
    told = commands.seamline("sinks", "list", "sunk")
    assert "by_shop_kafka: by_shop when=change to topic sunk.by_shop of kafka_default" in told
    send(kafka, (4, "c", 1))
    eventually("the last to be sent", lambda: read_totals(kafka) == {"a": 17, "b": 5, "c": 1})
    commands.seamline("stream", "stop", "sunk")
    assert "ended at" in commands.seamline("sinks", "list", "sunk")
