"""A shop whose stream asks another system about payments, and what became of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
ROOT = Path(__file__).parents[3]


class Shop:
    """Sends payments, and reads what became of them."""

    def __init__(self, home: Path, code: Path, kafka: KafkaConnection) -> None:
        self.code, self.kafka, self.sent = code, kafka, 0
        code.mkdir()
        (code / "asked_function.py").write_text(FUNCTION)
        path = os.pathsep.join([str(ROOT / "include"), str(code)])
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

    def die_behind(self) -> None:
        """Let a stream die, once it has read some payments, before it has read the answers to all of them.

        It dies before it commits an epoch, so that the answers of that epoch are in the topic and not in the master.
        """
        self.stack.start(SEAMLINE_FAIL="slices:12")
        assert self.stack.driver
        while self.stack.driver.poll() is None:
            self.pay(10)

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
            # After a loss an answer may be read before its payment is read again.
            id = ids.get((row["scored_partition"], row["scored_offset"]), -1)
            found.setdefault(id, []).append(row)
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
        return Counter(map(int, (self.code / "calls").read_text().split()))

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


@contextmanager
def opened(home: Path, code: Path, kafka: KafkaConnection) -> Iterator[Shop]:
    """Have a shop with its topics, and end what it has begun; the function that asks is in a folder of its own."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic(PAYMENTS, 2)
        admin.create_topic(ANSWERS, 2)
        made = Shop(home, code, kafka)
        try:
            yield made
        finally:
            if made.stack.driver:
                made.stack.kill()
            admin.delete_topic(PAYMENTS)
            admin.delete_topic(ANSWERS)
