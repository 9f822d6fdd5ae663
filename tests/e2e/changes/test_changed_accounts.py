"""A table whose changes are the records of a topic, with its driver killed and its index lost on the way."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.supervisor.outside import stop_stream
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = pytest.mark.faults
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
TOPIC, PARTITIONS, KEYS = "bank.accounts", 3, 200
DEFINITION = """
from seamline import *

bank = Pipeline(
    name="bank",
    source=[
        KafkaSource(
            name="accounts",
            topic="bank.accounts",
            schema="id BIGINT NOT NULL, country STRING, balance DECIMAL(12,2), version BIGINT, op STRING, at TIMESTAMP",
            event_time="at",
            key=["id"],
            order="version",
            deleted="op = 'd'",
            watermark=Watermark("1 minute", idle_after="2 seconds"),
        )
    ],
    derive=[Changelog("open", of="accounts")],
    views=[
        View("by_country", of="open", keys=["country"], window=Global(),
             measures={"n": count(), "total": sum("balance")}),
        View("seen", of="accounts", keys=["country"], window=Tumbling("1 day"), measures={"n": count()}),
    ],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""


class Bank(Commands):
    """Accounts that change, and what they are after all changes that were sent."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.kafka, self.layout = kafka, Layout(home / "warehouse", "bank")
        self.dice, self.sent = random.Random(7), list[dict[str, Any]]()
        self.versions = Counter[int]()
        super().__init__(home, kafka, bank=DEFINITION)

    def change(self, count: int, first_minute: int) -> None:
        """Send changes in no order: some are deletions, some come again, and some are older than what was sent."""
        changes = []
        for number in range(count):
            id = self.dice.randrange(KEYS)
            self.versions[id] += 1
            at = BEGIN + timedelta(minutes=first_minute, seconds=number / 10)
            changes.append(
                {
                    "id": id,
                    "country": self.dice.choice(["se", "no", "dk"]),
                    "balance": f"{self.dice.randrange(100_000) / 100:.2f}",
                    "version": self.versions[id],
                    "op": self.dice.choice(["u"] * 9 + ["d"]),
                    "at": f"{at:%Y-%m-%dT%H:%M:%S}Z",
                }
            )
        changes += self.dice.sample(self.sent, len(self.sent) // 10)
        self.dice.shuffle(changes)
        with RecordWriter(self.kafka) as writer:
            for each in changes:
                # Changes of one account are in several partitions: versions alone tell their order.
                partition = self.dice.randrange(PARTITIONS)
                writer.send(TOPIC, value=json.dumps(each).encode(), partition=partition)
        self.sent += changes

    @property
    def table(self) -> dict[str, tuple[int, Decimal]]:
        """What accounts there are after all changes: how many in each country, and what they have."""
        newest: dict[int, dict[str, Any]] = {}
        for each in self.sent:
            if each["id"] not in newest or each["version"] > newest[each["id"]]["version"]:
                newest[each["id"]] = each
        counts, totals = Counter[str](), Counter[str]()
        for each in newest.values():
            if each["op"] != "d":
                counts[each["country"]] += 1
                totals[each["country"]] += Decimal(each["balance"])  # type: ignore[assignment]
        return {country: (count, Decimal(totals[country])) for country, count in counts.items()}

    def answer(self, *how: str) -> dict[str, tuple[int, Decimal]]:
        """Return what is answered of the same."""
        out = self.seamline("query", "bank.by_country", "--format", "csv", *how)
        rows = csv.DictReader(line for line in out.splitlines() if line.startswith(("country", '"')))
        return {row["country"]: (int(row["n"]), Decimal(row["total"])) for row in rows}

    def is_read(self) -> bool:
        """Return whether all that was sent is in the log."""
        if not Master.exists(self.layout):
            return False
        return sum(each.rows for each in each_epoch(self.layout)) == len(self.sent)

    def kill(self, *, lose: bool = False) -> None:
        """Kill the driver, which its supervisor starts again; what it kept of the table may be lost."""
        beat = Heartbeat.read(self.home, "bank")
        assert beat and beat.driver
        os.kill(beat.driver.pid, signal.SIGKILL)
        if lose:
            shutil.rmtree(self.home / "streams" / "bank" / "changed", ignore_errors=True)

    def stop(self) -> None:
        """Stop the stream."""
        self.seamline("stream", "stop", "bank")
        assert stop_stream(self.layout, timeout=120)


@pytest.fixture
def bank(tmp_path: Path, kafka: KafkaConnection) -> Iterator[Bank]:
    """A topic of three partitions."""
    made = Bank(tmp_path, kafka)
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
        yield made
        end_all(made.home)
        admin.delete_topic(TOPIC)


def test_a_table_is_right_in_both_layers_whatever_dies(bank: Bank) -> None:
    """Before a build, after it, and after changes of a day that is over have come late."""
    bank.change(2_000, 0)
    bank.seamline("stream", "start", "bank", "--here")
    eventually("the first changes to be read", bank.is_read)
    assert bank.answer() == bank.table
    bank.kill()
    bank.change(2_000, 24 * 60)
    eventually("the next to be read", bank.is_read)
    assert bank.answer() == bank.table
    bank.seamline("drain", "bank", "--reason", "all was sent")
    first = bank.table
    bank.seamline("run", "bank", "--from", "2026-01-05", "--to", "2026-01-06")
    assert bank.answer() == first
    bank.kill(lose=True)
    # Late ones of the day that is built, beside ones of the next.
    bank.change(500, 60)
    bank.change(500, 25 * 60)
    eventually("late changes to be read", bank.is_read)
    assert bank.answer() == bank.table != first
    bank.seamline("run", "bank", "--dirty")
    assert bank.answer() == bank.table
    assert "  build " not in bank.seamline("plan", "bank")
    said = bank.seamline("explain", "bank.by_country", "--key", "country=se", "--rows", "5")
    assert "Changes:" in said and "  NO " not in said, said
    bank.stop()
    assert "nothing is wrong" in bank.seamline("audit", "bank")
