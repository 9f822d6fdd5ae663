"""Rows that are imported are answered for as the same rows of a topic: joins, functions, sessions, copies, sketches."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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

pytestmark = pytest.mark.faults
BEGIN = datetime(2026, 1, 5, 6, tzinfo=UTC)
NAMES = ("files", "topic")
VIEWS = ("by_shop", "bought", "visits", "tenths", "carts", "worth")
DEFINITION = """
from seamline import *

LATE = Watermark("1 minute", idle_after="2 seconds")

{name} = Pipeline(
    name="{name}",
    source=[
        KafkaSource(
            name="clicks",
            topic="{name}.clicks",
            schema="id STRING NOT NULL, visitor STRING NOT NULL, shop STRING NOT NULL, total DECIMAL(10,2) NOT NULL, "
            "bought BOOLEAN NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            event_id=["id"],
            dedup_within="1 hour",
            rules=[Rule("no negative total", "total >= 0")],
            watermark=LATE,
        ),
        KafkaSource(
            name="orders",
            topic="{name}.orders",
            schema="id STRING NOT NULL, visitor STRING NOT NULL, amount DECIMAL(10,2) NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            event_id=["id"],
            dedup_within="1 hour",
            watermark=LATE,
        ),
    ],
    derive=[
        Join("bought_after", left="clicks", right="orders", on={{"visitor": "visitor"}}, after="10 minutes"),
        Process("folded", of="clicks", by="seamline.local.carts:Carts", keys=["shop", "visitor"], begin="1 day"),
    ],
    views=[
        View("by_shop", of="clicks", keys=["shop"], window=Tumbling("1 hour"),
             measures={{"n": count(), "total": sum("total"), "visitors": distinct("visitor")}}),
        View("bought", of="bought_after", keys=["clicks_shop"], window=Tumbling("1 hour"),
             measures={{"pairs": count(), "amount": sum("orders_amount"), "none": count("unmatched")}}),
        View("visits", of="clicks", keys=["visitor"], window=Session("5 minutes"), measures={{"n": count()}}),
        View("tenths", of="clicks", keys=["shop"], window=Sliding("1 hour", "10 minutes"), measures={{"n": count()}}),
        View("carts", of="folded", keys=["shop", "kind"], window=Tumbling("1 hour"),
             measures={{"carts": count(), "worth": sum("total")}}),
        View("worth", of="orders", keys=[], window=Tumbling("1 day"),
             measures={{"n": count(), "amount": sum("amount")}}),
    ],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""


def draw_rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw clicks and orders of an afternoon in the order of time but for a minute, some twice, one wrong."""
    dice = random.Random(34)
    clicks, orders = [], []
    for number in range(3_000):
        at = BEGIN + timedelta(seconds=number * 4 - dice.randrange(40))
        visitor = f"v{dice.randrange(60)}"
        total = Decimal(dice.randrange(-1 if number == 70 else 0, 9_000)) / 100
        clicks.append(
            {"id": f"c{number}", "visitor": visitor, "shop": f"s{dice.randrange(4)}", "total": total,
             "bought": dice.random() < 0.1, "at": at}
        )  # fmt: skip
        if dice.random() < 0.3:
            orders.append(
                {
                    "id": f"o{number}",
                    "visitor": visitor,
                    "amount": total,
                    "at": at + timedelta(seconds=dice.randrange(500)),
                }
            )
        if dice.random() < 0.05:
            clicks.append(dict(dice.choice(clicks[-20:])))
    clicks.append({**clicks[0], "id": "wrong", "total": Decimal(-1)})
    return clicks, orders


class Both(Commands):
    """Two pipelines of one definition: of one the rows are in files, of the other in topics."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.kafka = kafka
        super().__init__(home, kafka, **{name: DEFINITION.format(name=name) for name in NAMES})

    def send(self, topic: str, rows: Sequence[dict[str, Any]]) -> None:
        """Send rows as records."""
        with RecordWriter(self.kafka) as writer:
            for row in rows:
                value = {**row, "at": f"{row['at']:%Y-%m-%dT%H:%M:%S}Z"}
                value |= {name: str(each) for name, each in row.items() if isinstance(each, Decimal)}
                text = json.dumps(value)
                millis = int(row["at"].timestamp() * 1000)
                writer.send(topic, value=text.encode(), partition=0, timestamp_ms=millis)

    def count(self, name: str) -> int:
        """Return how many records a pipeline has taken in."""
        layout = Layout(self.home / "warehouse", name)
        if not Master.exists(layout):
            return 0
        return sum(each.rows + sum(each.refused.values()) for each in each_epoch(layout))

    def answer(self, name: str, view: str) -> list[tuple[str, ...]]:
        """Return the rows of a view without what is said of how they were counted."""
        out = self.seamline("query", f"{name}.{view}", "--format", "csv", "--limit", "1000000")
        rows = list(csv.reader(io.StringIO(out)))
        last = rows[0].index("batch_part")
        return sorted(tuple(row[:last]) for row in rows[1:] if len(row) == len(rows[0]))


@pytest.fixture
def both(tmp_path: Path, kafka: KafkaConnection) -> Iterator[Both]:
    """Empty topics."""
    made = Both(tmp_path, kafka)
    topics = [f"{name}.{kind}" for name in NAMES for kind in ("clicks", "orders")]
    with TopicAdmin(kafka) as admin:
        for topic in topics:
            admin.create_topic(topic, 1)
        yield made
        end_all(made.home)
        for topic in topics:
            admin.delete_topic(topic)


def test_every_kind_of_view_counts_imported_rows_like_those_of_a_topic(both: Both) -> None:
    """Beside a live stream, in several pieces, and both sources; after a build too."""
    clicks, orders = draw_rows()
    for name, rows in (("clicks", clicks), ("orders", orders)):
        table = pa.Table.from_pylist(rows)
        pq.write_table(table, both.home / f"{name}.parquet", row_group_size=700)
        both.send(f"topic.{name}", rows)
    for name in NAMES:
        both.seamline("stream", "start", name, "--here")
    both.seamline("import", "files", "--from", str(both.home / "clicks.parquet"), "--source", "clicks")
    both.seamline("import", "files", "--from", str(both.home / "orders.parquet"), "--source", "orders")
    whole = len(clicks) + len(orders)
    eventually("all to be read", lambda: [both.count(name) for name in NAMES] == [whole, whole])
    for name in NAMES:
        both.seamline("drain", name, "--reason", "all was sent")
    for view in VIEWS:
        told: dict[str, Any] = {}

        def equal(view: str = view, told: dict[str, Any] = told) -> bool:
            told |= {name: both.answer(name, view) for name in NAMES}
            return bool(told["files"]) and told["files"] == told["topic"]

        eventually(f"{view} to be equal", equal)
    for name in NAMES:
        both.seamline("stream", "stop", name)
        assert stop_stream(Layout(both.home / "warehouse", name), timeout=120)
    assert "nothing is wrong" in both.seamline("audit", "files")
