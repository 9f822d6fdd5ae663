"""Answers of another system for the rows of a real stream: what is killed, slow, wrong or away, each row has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.master import Master
from seamline.local.stack import StreamStack

PAYMENTS, ANSWERS = "asked.payments", "asked.scored.answers"
DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="asked",
    source=[
        KafkaSource(
            name="payments",
            topic="asked.payments",
            schema="id INT NOT NULL, user STRING, amount INT, at TIMESTAMP",
            event_time="at",
        ),
    ],
    derive=[
        Ask(
            "scored",
            of="payments",
            by="asked_function:ask",
            request={"id": "id", "user": "user"},
            columns=["risk INT"],
            when="amount >= 50",
            retries=1,
        ),
    ],
    views=[
        View(
            "by_user",
            of="scored",
            keys=["payments_user"],
            window=Tumbling("1 day"),
            measures={"n": count(), "risk": sum("scored_risk"), "asked": count("left"), "open": count("unmatched")},
        ),
        View("all", of="payments", keys=["user"], window=Tumbling("1 day"), measures={"n": count()}),
    ],
    stream=Stream(trigger="200 milliseconds"),
    batch=Batch("1 day", "2024-01-01"),
)
"""
FUNCTION = """
import os
import subprocess
import sys
from pathlib import Path
from seamline import NoAnswer

HERE = Path(__file__).parent

async def ask(requests):
    with (HERE / "calls").open("a") as file:
        file.writelines(f"{each['id']}\\n" for each in requests)
    if (HERE / "away").exists():
        raise ConnectionError("nobody is there")
    return [answer(each) for each in requests]

def answer(request):
    if request["id"] % 10 == 7 and not (HERE / "mended").exists():
        return NoAnswer("unknown")
    if request["id"] % 100 == 33 and not (HERE / "mended").exists():
        return {"risk": "high"}
    return {"risk": request["id"]}
"""
PATIENCE = 40
ROOT = Path(__file__).parents[2]


class Shop:
    """Sends payments, and reads what became of them."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.home, self.kafka, self.sent = home, kafka, 0
        (home / "code").mkdir()
        (home / "code" / "asked_function.py").write_text(FUNCTION)
        path = os.pathsep.join([str(ROOT / "include"), str(home / "code")])
        self.stack = StreamStack(home, DEFINITION, kafka, "asked", env={"PYTHONPATH": path})

    def pay(self, count: int) -> None:
        """Send so many payments, of which every second one is asked about."""
        with RecordWriter(self.kafka) as writer:
            for id in range(self.sent, self.sent + count):
                row = {
                    "id": id,
                    "user": f"user {id % 3}",
                    "amount": 50 * (id % 2),
                    "at": "2024-01-01T06:00:00Z",
                }
                writer.send(PAYMENTS, value=json.dumps(row).encode(), partition=id % 2)
        self.sent += count

    @property
    def asked(self) -> list[int]:
        """The payments that are asked about."""
        return [id for id in range(self.sent) if id % 2]

    def rows(self, source: str) -> list[dict[str, Any]]:
        """Read the rows of a source."""
        if not Master.exists(self.stack.layout):
            return []
        found = DeltaTable(str(self.stack.layout.table("master"))).to_pyarrow_table().to_pylist()
        return [row for row in found if row["_source"] == source]

    def answers(self) -> dict[int, list[dict[str, Any]]]:
        """Read the records of answers by the payment that they are about."""
        ids = {(row["_partition"], row["_offset"]): row["id"] for row in self.rows("payments")}
        found: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows("scored_answers"):
            found.setdefault(ids[row["scored_partition"], row["scored_offset"]], []).append(row)
        return found

    def wait_for_answers(self) -> None:
        """Wait until the stream has read a record for each payment that is asked about."""
        self.stack.wait("the answers", lambda: self.answers().keys() == {*self.asked}, PATIENCE)

    def has_read_payments(self) -> bool:
        """Return whether the stream has read all payments."""
        return len(self.rows("payments")) == self.sent

    def count_ends(self) -> int:
        """Count how often a process that asks was killed."""
        log = self.stack.log
        return log.read_text(errors="replace").count("has ended with code -9") if log.exists() else 0

    def calls(self) -> Counter[int]:
        """Count the requests by payment."""
        return Counter(map(int, (self.home / "code" / "calls").read_text().split()))

    def seamline(self, *words: str) -> str:
        """Run a command of ours, and return what it prints."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        return subprocess.run(
            command, env=self.stack.settings, text=True, stdout=subprocess.PIPE, timeout=300, check=True
        ).stdout

    def read_served(self, side: str = "merged") -> dict[str, tuple[int, int, int, int]]:
        """Read the view of answered payments by user: answers, their sum, payments asked about, those that wait."""
        told = self.seamline("query", "asked.by_user", "--side", side, "--format", "json")
        found = [json.loads(line) for line in told.splitlines()]
        return {row["payments_user"]: (row["n"], row["risk"], row["asked"], row["open"]) for row in found}

    def expect_served(self, *, unknown: bool = True) -> dict[str, tuple[int, int, int, int]]:
        """Compute the same of what was sent, once all was asked; ``unknown`` are those without an answer."""
        found = {}
        for user in {id % 3 for id in self.asked}:
            mine = [id for id in self.asked if id % 3 == user]
            good = [id for id in mine if not (unknown and (id % 10 == 7 or id % 100 == 33))]
            found[f"user {user}"] = (len(good), sum(good), len(mine), len(mine) - len(good))
        return found


@pytest.fixture
def shop(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Shop]:
    with TopicAdmin(kafka) as admin:
        admin.create_topic(PAYMENTS, 2)
        admin.create_topic(ANSWERS, 2)
        made = Shop(tmp_path, kafka)
        yield made
        if made.stack.driver:
            made.stack.kill()
        admin.delete_topic(PAYMENTS)
        admin.delete_topic(ANSWERS)


def test_rows_without_an_answer_are_asked_about_again_by_decision(shop: Shop) -> None:
    """Errors are recorded, keep no interval from being published, and a build makes no call."""
    shop.stack.start()
    shop.pay(60)
    shop.wait_for_answers()
    errors = {some[0]["scored_error"] for some in shop.answers().values()} - {None}
    assert errors == {"unknown", "risk is 'high', not INT"}
    assert shop.read_served() == shop.expect_served()
    assert set(shop.calls().values()) == {1}

    (shop.home / "code" / "mended").touch()
    told = shop.seamline("ask", "asked", "scored", "--only-errors", "--reason", "the system knows them now")
    assert "errors of" in told
    wrong = [id for id, some in shop.answers().items() if some[0]["scored_error"]]
    shop.stack.wait("answers", lambda: shop.read_served() == shop.expect_served(unknown=False), PATIENCE, 1)
    assert shop.calls() == Counter({id: 1 + (id in wrong) for id in shop.asked})
    assert {id: len(some) for id, some in shop.answers().items()} == {
        id: 1 + (id in wrong) for id in shop.asked
    }

    shop.seamline("drain", "asked", "--reason", "closed")
    shop.stack.wait("the end", lambda: "2024-01-02" in shop.stack.heartbeat()["watermark"], PATIENCE)
    assert shop.stack.stop() == 0
    shop.seamline("run", "asked", "--dirty")
    assert shop.read_served("batch") == shop.expect_served(unknown=False) == shop.read_served()
    assert sum(shop.calls().values()) == len(shop.asked) + len(wrong)


def test_a_system_that_is_away_keeps_its_rows_waiting_and_no_others(shop: Shop) -> None:
    away = shop.home / "code" / "away"
    away.touch()
    shop.stack.start()
    shop.pay(100)
    shop.stack.wait("payments", shop.has_read_payments, PATIENCE)
    shop.stack.wait("the alarm", lambda: shop.stack.heartbeat()["asks"]["scored"]["away"] > 0, PATIENCE)
    said = shop.stack.heartbeat()["asks"]["scored"]
    assert said["trouble"] == "ConnectionError: nobody is there"
    assert not shop.answers()
    assert {n for n, *_ in shop.read_served().values()} == {0}
    away.unlink()
    shop.wait_for_answers()
    assert {some[0]["scored_error"] for some in shop.answers().values()} == {
        None,
        "unknown",
        "risk is 'high', not INT",
    }
    assert shop.read_served() == shop.expect_served()
    assert shop.stack.stop() == 0


@pytest.mark.faults
def test_what_is_killed_asks_again_and_no_row_has_two_answers(shop: Shop) -> None:
    """The process that asks dies between answer and record, and between record and position; then the driver does."""
    for point in ("answered", "recorded"):
        shop.stack.start(SEAMLINE_FAIL=f"{point}:3:python")
        before = shop.count_ends()
        while shop.count_ends() < before + 2:
            shop.pay(4)
            shop.stack.wait("epochs", shop.has_read_payments, PATIENCE)
        shop.stack.kill()
    assert max(shop.calls().values()) > 1
    shop.stack.start(SEAMLINE_FAIL="master:4")
    assert shop.stack.driver
    while shop.stack.driver.poll() is None:
        shop.pay(10)
    shop.stack.start()
    shop.pay(20)
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    assert {id: len(some) for id, some in shop.answers().items()} == dict.fromkeys(shop.asked, 1)
