"""Orders as JSON and returns as CSV in one pipeline, whose driver is killed: every answer is a plain count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults.rig.processes import end_all
from tests.faults.rig.trial import Trial, eventually

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import known_epochs
from seamline.local.stack import StreamStack
from seamline.serve.read import read
from seamline.supervisor.supervisor_heartbeat import Heartbeat

NAME = "sources"
DAY = datetime(2026, 1, 5, tzinfo=UTC)
CITIES = {"a": "Rome", "b": "Oslo"}
DEFINITION = """
from seamline import *

day = Tumbling("1 day")
pipeline = Pipeline(
    name="sources",
    source=[
        KafkaSource(
            name="orders", topic="ORDERS", schema="id STRING, shop STRING, amount INT, note STRING, at TIMESTAMP",
            event_time="at", event_id=["id"], rules=[Rule("positive", "amount > 0")], side={"tests": "note = 'test'"},
            lookups=[Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name"])],
            select={"city": "cities_name"}, watermark=Watermark("1 hour", idle_after="2 seconds"),
        ),
        KafkaSource(
            name="returns", topic="RETURNS", format="csv",
            schema="parcel BIGINT, shop STRING, sent TIMESTAMP, note STRING",
            event_time="sent", event_id=["parcel"], select={"city": "'back'", "weight": "CAST(note AS INT)"},
            watermark=Watermark("3 hours", idle_after="4 seconds"),
        ),
    ],
    views=[
        View("sold", of="orders", keys=["city"], window=Tumbling("1 hour"),
             measures={"n": count(), "total": sum("amount")}),
        View("back", of="returns", keys=["shop"], window=day, measures={"n": count(), "total": sum("weight")}),
        View("both", of=["orders", "returns"], keys=["shop", "city"], window=day, measures={"n": count()}),
    ],
    stream=Stream(trigger="100 milliseconds", max_offsets_per_epoch=150),
    batch=Batch("1 day", "2026-01-01"),
)
"""
VIEWS = {
    "sold": (("orders",), ("city",), timedelta(hours=1)),
    "back": (("returns",), ("shop",), timedelta(days=1)),
    "both": (("orders", "returns"), ("shop", "city"), timedelta(days=1)),
}
Counts = dict[tuple[Any, ...], tuple[int, int]]
"""How many events, and their sum, by key and start of the window."""


@dataclass(frozen=True)
class Event:
    """An event that should count, as its producer knows it."""

    source: str
    id: int
    shop: str
    city: str | None
    number: int
    at: datetime


class Sources:
    """The two topics, and what was sent to them."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.kafka, self.sent, self.events = kafka, 0, list[Event]()
        self.topics = {name: f"{NAME}.{name}.{os.getpid()}" for name in ("orders", "returns")}
        text = DEFINITION.replace("ORDERS", self.topics["orders"]).replace("RETURNS", self.topics["returns"])
        self.stack = StreamStack(home, text, kafka, NAME)
        (home / "pipelines" / "cities.csv").write_text("shop,name\na,Rome\nb,Oslo\n")
        with TopicAdmin(kafka) as admin:
            for topic in self.topics.values():
                admin.create_topic(topic, 1)

    def send(self, first: int, last: int, hour: float) -> None:
        """Send orders and returns of these numbers, an order and a return in seven with something wrong."""
        with RecordWriter(self.kafka) as writer:
            for id in range(first, last):
                at, shop = DAY + timedelta(hours=hour + id % 12), "abc"[id % 3]
                self.order(writer, id, shop, at, amount=0 if id % 7 == 1 else id, test=id % 7 == 2)
                self.sent_back(writer, id, shop, at, note="x" if id % 7 == 3 else str(id))

    def order(
        self, writer: RecordWriter, id: int, shop: str, at: datetime, amount: int, *, test: bool
    ) -> None:
        """Send an order."""
        row = {
            "id": str(id),
            "shop": shop,
            "amount": amount,
            "note": "test" if test else "",
            "at": at.isoformat(),
        }
        self.put(writer, "orders", json.dumps(row))
        if amount and not test:
            self.events.append(Event("orders", id, shop, CITIES.get(shop), amount, at))

    def sent_back(self, writer: RecordWriter, id: int, shop: str, at: datetime, note: str) -> None:
        """Send a return."""
        self.put(writer, "returns", f"{id},{shop},{at.isoformat()},{note}")
        if note.isdigit():
            self.events.append(Event("returns", id, shop, "back", int(note), at))

    def put(self, writer: RecordWriter, source: str, value: str) -> None:
        """Send a record."""
        writer.send(self.topics[source], value=value.encode(), partition=0)
        self.sent += 1

    def seamline(self, *words: str) -> str:
        """Run a command of ours, which must do well, and return what it says."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        done = subprocess.run(command, env=self.stack.settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def drained(self, watermark: datetime) -> None:
        """Wait until all is read and event time has come so far."""

        def done() -> bool:
            if self.stack.offsets_read() < self.sent:
                return False
            mark = known_epochs(self.stack.layout)[-1].watermark
            return mark is not None and mark >= watermark

        eventually("the records to be read, and the watermark", done)

    def kill(self) -> None:
        """Kill the driver with all that it has started."""
        beat = Heartbeat.read(self.stack.home, NAME)
        assert beat
        assert beat.driver
        driver = psutil.Process(beat.driver.pid)
        for each in [driver, *driver.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                each.kill()

    def counted(self, view: str, side: str, *, built: datetime) -> Counts:
        """Count a view's events; those of before ``built`` once for each id, for all sides but speed's."""
        of, keys, size = VIEWS[view]
        known, found = set[tuple[Any, ...]](), defaultdict[tuple[Any, ...], list[int]](lambda: [0, 0])
        for each in self.events:
            id = (each.source, each.id, each.at.date())
            repeated = side != "speed" and each.at < built and id in known
            known.add(id)
            if each.source in of and not repeated and not (side == "batch" and each.at >= built):
                start = DAY + (each.at - DAY) // size * size
                row = found[(*(getattr(each, key) for key in keys), start)]
                row[0], row[1] = row[0] + 1, row[1] + each.number
        return {place: (n, total) for place, (n, total) in found.items()}

    def answered(self, view: str, side: str) -> Counts:
        """Read a view's answer."""
        rows = read(
            f"{NAME}.{view}",
            warehouse=self.stack.layout.warehouse,
            definitions=self.stack.home / "pipelines",
            side=side,
        )
        return {
            (*(row[key] for key in VIEWS[view][1]), row["window_start"]): (row["n"], row.get("total", -1))
            for row in rows.to_pylist()
        }


@pytest.fixture
def sources(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Sources]:
    made = Sources(tmp_path, kafka)
    yield made
    end_all(tmp_path)
    with TopicAdmin(kafka) as admin:
        for topic in made.topics.values():
            admin.delete_topic(topic)


def test_two_sources_are_counted_whatever_ends_their_driver(sources: Sources, trial: Trial) -> None:
    """Each by its own format, ids and watermark, in one log that a kill -9 interrupts."""
    sources.seamline("stream", "start", NAME, "--here")
    sources.send(0, 200, hour=0)
    sources.drained(DAY)
    sources.send(200, 500, hour=12)
    sources.kill()
    trial.prove("a kill with records of both unread", sources.stack.offsets_read() < sources.sent)
    with RecordWriter(sources.kafka) as writer:
        for value in ("{", '{"id": "7"}'):
            sources.put(writer, "orders", value)
        sources.put(writer, "returns", "1,a")
        # The order of an id again, a return of one that an order has, and both late.
        sources.order(writer, 4, "b", DAY + timedelta(hours=4), 4, test=False)
        sources.sent_back(writer, 4, "b", DAY + timedelta(hours=4), "4")
        # The returns are silent from here on: once they are idle, the orders alone move the watermark.
        sources.order(writer, 900, "a", DAY + timedelta(hours=40), 1, test=False)
    sources.drained(DAY + timedelta(hours=39))
    said = sources.seamline("run", NAME, "--from", "2026-01-05", "--to", "2026-01-06")
    assert "Certified 3, published 3" in said
    for view in VIEWS:
        for side in ("merged", "batch", "speed"):
            wanted = sources.counted(view, side, built=DAY + timedelta(days=1))
            found = sources.answered(view, side)
            if view == "both":
                wanted = {place: (n, -1) for place, (n, _) in wanted.items()}
            assert found == wanted, (view, side)
    assert "nothing is wrong" in sources.seamline("audit", NAME)
    explained = sources.seamline(
        "explain", f"{NAME}.both", "--key", "shop=a", "--key", "city=back", "--window", "2026-01-05"
    )
    assert f"returns: {sources.topics['returns']}/0@0" in explained
    sources.seamline("stream", "stop", NAME)
