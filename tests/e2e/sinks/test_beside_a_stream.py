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
from seamline.kafka.sending.committed_records import read_topic
from seamline.kafka.sending.replay_topic import Stored
from seamline.kafka.transactions import read_committed_tail
from seamline.model.protocol.sinks.letter_headers import split_headers

pytestmark = pytest.mark.faults
TOPIC, OUT = "sunk.orders", "sunk.by_shop"
DEAD = ("sunk.rejected", "sunk.late", "sunk.tests")
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
    side={"tests": "amount < 0"},
    sinks=[
        KafkaSink("by_shop", topic="sunk.by_shop"),
        *(DeadLetterSink(of, topic=f"sunk.{of}") for of in ("rejected", "late", "tests")),
    ],
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
        ours = {name for each in (OUT, *DEAD) for name in (each, f"{each}.position")}
        for name in {TOPIC, *ours} & {*admin.topics()}:
            admin.delete_topic(name)


def order(id: int, shop: str, amount: int) -> bytes:
    """Write an order, which is placed so many minutes past eight as its id says."""
    return json.dumps({"id": id, "shop": shop, "amount": amount, "at": f"2026-01-05T08:{id:02}:00Z"}).encode()


def send(kafka: KafkaConnection, *orders: tuple[int, str, int]) -> None:
    """Send orders: id, shop, amount."""
    with RecordWriter(kafka) as writer:
        for id, shop, amount in orders:
            writer.send(TOPIC, value=order(id, shop, amount), partition=0)


def read_totals(kafka: KafkaConnection) -> dict[str, Any]:
    """Read the newest total of each shop, as a consumer of committed records does."""
    with TopicAdmin(kafka) as admin:
        if OUT not in admin.topics():
            return {}
    rows = [json.loads(value) for value in read_committed_tail(kafka, OUT, {})]
    return {row["shop"]: row["total"] for row in rows}


def read_letters(kafka: KafkaConnection) -> dict[str, list[tuple[bytes | None, str]]]:
    """Read the value of each dead letter, and why it is one, by topic."""
    with TopicAdmin(kafka) as admin:
        there = [name for name in DEAD if name in admin.topics()]
    found = {name: [Stored.of(each) for each in read_topic(kafka, name)] for name in there}
    return {
        name: [(each.value, split_headers(each.headers)[1].reason) for each in some]
        for name, some in found.items()
    }


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
    send(kafka, (0, "a", 2), (5, "d", -1))
    with RecordWriter(kafka) as writer:
        writer.send(TOPIC, value=b"{broken", key=b"k", partition=0)
    letters = {
        "sunk.rejected": [(b"{broken", "malformed json")],
        "sunk.late": [(order(0, "a", 2), "late")],
        "sunk.tests": [(order(5, "d", -1), "side tests")],
    }
    eventually("dead letters to be sent", lambda: read_letters(kafka) == letters)
    assert "1 produced again" in commands.seamline("sinks", "replay", "sunk", "rejected_dead_letters")
    letters["sunk.rejected"] *= 2
    eventually("what went back to be refused again", lambda: read_letters(kafka) == letters)
    assert read_totals(kafka)["a"] == 19
    commands.seamline("stream", "stop", "sunk")
    assert "ended at" in commands.seamline("sinks", "list", "sunk")
