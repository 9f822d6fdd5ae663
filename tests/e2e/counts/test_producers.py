"""Producers say what they have sent, over a real broker: what is withheld is named until it comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.model.errors import AuditFailed, PublishRefused
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
TOPIC, SAID = "counted.orders", "counted.orders.counts"
DEFINITION = """
from seamline import *

counted = Pipeline(
    name="counted",
    source=KafkaSource(
        topic="counted.orders",
        schema="id BIGINT NOT NULL, shop STRING, amount BIGINT, at TIMESTAMP NOT NULL",
        event_time="at",
        event_id=["id"],
        watermark=Watermark("1 minute", idle_after="2 seconds"),
        counts=Counts("counted.orders.counts", producer="shop", required=True),
    ),
    rules=[Rule("no gifts", "amount > 0")],
    views=[View("by_shop", keys=["shop"], window=Tumbling("1 hour"), measures={"n": count()})],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""
DAY = ("--from", "2026-01-05", "--to", "2026-01-06")


class Shops(Commands):
    """Two shops that send orders, and say how many."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.kafka, self.layout = kafka, Layout(home / "warehouse", "counted")
        self.sent = 0
        super().__init__(home, kafka, counted=DEFINITION)

    def order(self, shop: str, *ids: int, day: int = 5, amount: int = 10) -> None:
        """Send orders of a shop, each in its minute of the morning of a day."""
        with RecordWriter(self.kafka) as writer:
            for id in ids:
                value = {
                    "id": id,
                    "shop": shop,
                    "amount": amount,
                    "at": f"2026-01-{day:02}T08:{id % 60:02}:00Z",
                }
                writer.send(TOPIC, value=json.dumps(value).encode(), partition=0)
        self.sent += len(ids)

    def say(self, shop: str, count: int, start: str = "05T00", end: str = "06T00") -> None:
        """State how many a shop has sent."""
        bounds = {"from": f"2026-01-{start}:00:00Z", "to": f"2026-01-{end}:00:00Z"}
        with RecordWriter(self.kafka) as writer:
            value = {"producer": shop, **bounds, "count": count}
            writer.send(SAID, value=json.dumps(value).encode(), partition=0)

    def read(self) -> int:
        """Return how many records are in the log."""
        if not Master.exists(self.layout):
            return 0
        return sum(len(part) for each in read_condensed_log(self.layout) for part in each.ranges)

    def counts(self) -> str:
        """Return what is told of what is there, whatever the exit code."""
        return self.begin("counts", "counted", "--no-take").communicate()[0]

    def await_all(self) -> None:
        """Wait until all is read that was sent."""
        eventually("all orders to be read", lambda: self.read() == self.sent)


@pytest.fixture
def shops(tmp_path: Path, kafka: KafkaConnection) -> Iterator[Shops]:
    """A topic of orders, and one of statements."""
    made = Shops(tmp_path, kafka)
    with TopicAdmin(kafka) as admin:
        for name in (TOPIC, SAID):
            admin.create_topic(name, 1)
        yield made
        end_all(made.home)
        for name in (TOPIC, SAID):
            admin.delete_topic(name)


def test_what_is_withheld_is_named_and_what_comes_late_completes_it(shops: Shops) -> None:
    """By producer and span, before anybody is told that a day is over; the supervisor takes the statements."""
    shops.order("eu", 1, 2, 3)
    shops.order("us", 11, 12)
    shops.order("us", 13, amount=0)
    shops.say("eu", 1, "05T00", "05T08")
    shops.say("eu", 5, "05T08")
    shops.say("eu", 0, "05T00", "05T08")
    shops.say("us", 3)
    with RecordWriter(shops.kafka) as writer:
        writer.send(SAID, value=b"{no statement", partition=0)
    assert "statements counted.orders.counts: 5 offsets" in shops.seamline("doctor", "--no-airflow")
    shops.seamline("stream", "start", "counted", "--here")
    shops.order("eu", 20, day=6)
    shops.await_all()
    eventually(
        "the supervisor to take statements",
        lambda: "no statement" in shops.counts(),
    )
    said = shops.seamline("counts", "counted", code=1)
    assert "eu 2026-01-05T08:00:00Z/2026-01-06T00:00:00Z: 2 missing" in said, said
    assert "no statement: counted.orders.counts/0@4: not JSON: {no statement" in said, said
    built = shops.seamline("run", "counted", *DAY, code=PublishRefused.exit_code)
    assert "2 missing, 5 sent and 3 read" in built, built
    shown = shops.seamline("certificate", "counted.by_shop", "2026-01-05", code=1)
    assert "NO   producers' counts: 8 sent by 2 producers, 6 read" in shown, shown
    assert "missing: producer eu" in shops.seamline("audit", "counted", code=AuditFailed.exit_code)

    shops.order("eu", 4, 5)
    shops.await_all()
    shops.seamline("run", "counted", *DAY)
    shown = shops.seamline("certificate", "counted.by_shop", "2026-01-05")
    assert "yes  producers' counts: 8 sent by 2 producers, 8 read" in shown, shown
    assert "nothing is wrong" in shops.seamline("audit", "counted", *DAY)
    assert json.loads(
        shops.seamline("counts", "counted", *DAY, "--no-take", "--format", "json").splitlines()[0]
    )[0]["complete"]
    shops.seamline("stream", "stop", "counted")
    assert stop_stream(shops.layout, timeout=120)
