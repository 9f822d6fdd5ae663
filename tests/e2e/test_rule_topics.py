"""Rules from a compacted topic of a real broker, changed under a stream that is killed: what each payment has met."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from seamline.cli import main
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import known_epochs
from seamline.local.stack import StreamStack
from seamline.model.errors import TopicRecreated

PAYMENTS, LIMITS = "cards.payments", "cards.limits"
DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="cards",
    source=[
        KafkaSource(
            name="payments",
            topic="cards.payments",
            schema="id INT, country STRING, amount INT, at TIMESTAMP",
            event_time="at",
            lookups=[
                Lookup(
                    "limits",
                    of="limits",
                    on={"country": "country"},
                    columns=["name", "least INT"],
                    where="amount > limits_least",
                    condition="when",
                    every="limits",
                )
            ],
        ),
        KafkaSource(
            name="limits",
            topic="cards.limits",
            schema="country STRING, name STRING, least INT, when STRING",
            event_time="_kafka_timestamp",
        ),
    ],
    views=[
        View(
            "by_limit",
            of="payments",
            keys=["limit"],
            window=Tumbling("1 day"),
            explode={"limit": "limits"},
            measures={"n": count()},
        )
    ],
    stream=Stream(trigger="200 milliseconds"),
    batch=Batch("1 day", "2024-01-01"),
)
"""
COUNTRIES, PATIENCE = ("NO", "SE", "DK"), 300
Rule = tuple[str, str, int]
"""The country, the name and the least amount."""


@pytest.fixture
def stack(kafka: KafkaConnection, tmp_path: Path) -> Iterator[StreamStack]:
    """The topic of rules is compacted, and keeps what it has long enough to be read."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic(PAYMENTS, 2)
        create_rules(admin)
        made = StreamStack(tmp_path, DEFINITION, kafka, "cards")
        yield made
        if made.driver:
            made.kill()
        admin.delete_topic(PAYMENTS)
        admin.delete_topic(LIMITS)


def create_rules(admin: TopicAdmin) -> None:
    admin.create_topic(LIMITS, 1, config={"cleanup.policy": "compact"})


def read_master(stack: StreamStack) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(stack.layout.table("master"))).to_pyarrow_table().to_pylist()
    return rows


class Shop:
    """Sends payments and rules in turns, and remembers the rules in the order of their offsets."""

    def __init__(self, kafka: KafkaConnection, seed: int) -> None:
        self.kafka, self.draw = kafka, random.Random(seed)
        self.rules: list[tuple[str, Rule | None]] = []
        """Keys with what is in force from that offset on; None for a tombstone, and a wrong one leaves what was."""
        self.sent = 0

    def trade(self, turns: int) -> None:
        """Send so many rules, with a few payments before each."""
        with RecordWriter(self.kafka) as writer:
            for _ in range(turns):
                for _ in range(self.draw.randrange(6)):
                    row = {
                        "id": self.sent,
                        "country": self.draw.choice(COUNTRIES),
                        "amount": self.draw.randrange(100),
                    }
                    row["at"] = "2024-01-01T06:00:00Z"
                    writer.send(PAYMENTS, value=json.dumps(row).encode(), partition=self.sent % 2)
                    self.sent += 1
                self.change(writer)

    def change(self, writer: RecordWriter) -> None:
        """Send a rule, a tombstone, or what is no rule."""
        key = self.draw.choice("abcdef")
        rule = self.draw.choice(COUNTRIES), f"rule {key}", self.draw.randrange(100)
        kind = self.draw.choice(["rule", "rule", "rule", "tombstone", "wrong"])
        value: dict[str, Any] | None = dict(zip(("country", "name", "least"), rule, strict=True))
        if kind == "tombstone":
            value = None
        elif value:
            value["when"] = "true" if kind == "rule" else "amount >"
        writer.send(
            LIMITS, key=key.encode(), value=json.dumps(value).encode() if value else None, partition=0
        )
        before = next((held for name, held in reversed(self.rules) if name == key), None)
        self.rules.append((key, rule if kind == "rule" else None if kind == "tombstone" else before))

    def names(self, until: int, country: str, amount: int) -> list[str]:
        """Name the rules of the first so many that a payment meets."""
        held = dict(self.rules[:until])
        return sorted(rule[1] for rule in held.values() if rule and rule[0] == country and amount > rule[2])


@pytest.mark.faults
def test_each_payment_meets_the_rules_of_its_own_epoch(stack: StreamStack, kafka: KafkaConnection) -> None:
    """Killed twice while rules change; a start goes on from the table that the last epoch names."""
    shop = Shop(kafka, 7)
    for point in ("files", "master"):
        shop.trade(10)
        stack.start(SEAMLINE_FAIL=f"{point}:3")
        assert stack.driver
        while stack.driver.poll() is None:
            shop.trade(2)
        assert stack.driver.returncode == -signal.SIGKILL, stack.log.read_text(errors="replace")[-4000:]
    stack.start()
    for _ in range(5):
        shop.trade(4)
        stack.drain(shop.sent + len(shop.rules), PATIENCE)
    assert stack.stop() == 0

    rows = read_master(stack)
    payments = [row for row in rows if row["_topic"] == PAYMENTS]
    assert sorted(row["id"] for row in payments) == list(range(shop.sent))
    [rules] = {row["_topic_id"] for row in rows if row["_topic"] == LIMITS}
    ends, end, log = {}, 0, known_epochs(stack.layout)
    for epoch in log:
        end = max([end, *(part.end for part in epoch.ranges if part.lane.topic_id == rules)])
        ends[epoch.number] = end
    for row in payments:
        assert row["limits"] == shop.names(ends[row["_epoch"]], row["country"], row["amount"]), row
    assert len({epoch.lookups["limits"] for epoch in log if epoch.lookups}) > len("kills")


@pytest.mark.faults
def test_rules_of_a_topic_that_is_created_again_begin_anew(
    stack: StreamStack, kafka: KafkaConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream stops until somebody accepts that; then the first rule of the new topic ends all of the old one."""
    for name, value in stack.settings.items():
        monkeypatch.setenv(name, value)

    def send(**rules: str) -> None:
        with RecordWriter(kafka) as writer:
            for key, least in rules.items():
                value = {"country": "NO", "name": key, "least": int(least), "when": "true"}
                writer.send(LIMITS, key=key.encode(), value=json.dumps(value).encode(), partition=0)

    def pay(id: int) -> None:
        with RecordWriter(kafka) as writer:
            row = {"id": id, "country": "NO", "amount": 50, "at": "2024-01-01T06:00:00Z"}
            writer.send(PAYMENTS, value=json.dumps(row).encode(), partition=0)
        stack.wait(f"payment {id}", lambda: any(row["id"] == id for row in read_master(stack)), PATIENCE)

    send(old="10", high="90")
    stack.start()
    stack.drain(2, PATIENCE)
    pay(0)
    assert stack.stop() == 0
    with TopicAdmin(kafka) as admin:
        admin.delete_topic(LIMITS)
        create_rules(admin)
    stack.start()
    assert stack.driver and stack.driver.wait(PATIENCE) == TopicRecreated.exit_code
    assert main(["holes", "accept", "cards", "--reason", "made again"]) == 0
    stack.start()
    pay(1)
    send(new="20")
    stack.wait("the rule", lambda: any(row["name"] == "new" for row in read_master(stack)), PATIENCE)
    pay(2)
    assert stack.stop() == 0
    met = {row["id"]: row["limits"] for row in read_master(stack) if row["_topic"] == PAYMENTS}
    assert met == {0: ["old"], 1: ["old"], 2: ["new"]}
