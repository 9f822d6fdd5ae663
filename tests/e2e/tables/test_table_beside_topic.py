"""A table and a topic in one pipeline: rows of both are joined, and each is read while the other goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
BEGIN = datetime(2026, 1, 5, 6, tzinfo=UTC)
TOPIC = "shop.payments"
DEFINITION = """
from seamline import *

LATE = Watermark("1 minute", idle_after="2 seconds")

shop = Pipeline(
    name="shop",
    source=[
        DeltaSource(
            name="orders",
            table="{table}",
            schema="id BIGINT NOT NULL, shop STRING, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=LATE,
        ),
        KafkaSource(
            name="payments",
            topic="shop.payments",
            schema="order_id BIGINT NOT NULL, amount BIGINT, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=LATE,
        ),
    ],
    derive=[Join("paid", left="orders", right="payments", on={{"id": "order_id"}}, after="1 hour")],
    views=[
        View("by_shop", of="paid", keys=["orders_shop"], window=Tumbling("1 day"),
             measures={{"n": count(), "unpaid": count("unmatched"), "amount": sum("payments_amount")}}),
        View("ordered", of="orders", keys=["shop"], window=Tumbling("1 day"), measures={{"n": count()}}),
    ],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""


class Shop(Commands):
    """Orders in a table, payments in a topic."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.table, self.kafka, self.layout = home / "table", kafka, Layout(home / "warehouse", "shop")
        super().__init__(home, kafka, shop=DEFINITION.format(table=self.table))

    def order(self, *ids: int) -> None:
        """Append orders, one a minute."""
        at = [BEGIN + timedelta(minutes=n) for n in ids]
        rows = {"id": [*ids], "shop": ["s"] * len(ids), "at": pa.array(at, pa.timestamp("us", "UTC"))}
        write_deltalake(self.table, pa.table(rows), mode="append")

    def pay(self, *ids: int) -> None:
        """Send payments of 10, each two minutes after its order."""
        with RecordWriter(self.kafka) as writer:
            for id in ids:
                at = BEGIN + timedelta(minutes=id + 2)
                value = {"order_id": id, "amount": 10, "at": f"{at:%Y-%m-%dT%H:%M:%S}Z"}
                writer.send(TOPIC, value=json.dumps(value).encode(), partition=0)

    def answer(self, view: str) -> list[str]:
        """Return the measures of a view's only row."""
        if not Master.exists(self.layout):
            return []
        out = self.seamline("query", f"shop.{view}", "--format", "csv")
        rows = [line.split(",") for line in out.splitlines() if line.startswith('"s"')]
        return rows[0][3:6] if rows else []


@pytest.fixture
def shop(tmp_path: Path, kafka: KafkaConnection) -> Iterator[Shop]:
    """Ten orders, and a topic without a record."""
    made = Shop(tmp_path, kafka)
    made.order(*range(10))
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 1)
        yield made
        end_all(made.home)
        admin.delete_topic(TOPIC)


def test_rows_of_a_table_are_joined_with_records_of_a_topic(shop: Shop) -> None:
    """Whichever comes first; what is explained names the version of the table."""
    shop.seamline("stream", "start", "shop", "--here")
    eventually("the table to be read", lambda: shop.answer("ordered")[:1] == ["10"])
    shop.pay(*range(8), 11)
    eventually("payments to be joined", lambda: shop.answer("by_shop")[:1] == ["8"])
    shop.order(10, 11, 12)
    eventually("orders to be joined", lambda: shop.answer("by_shop")[:1] == ["9"])
    shop.seamline("drain", "shop", "--reason", "all was sent")
    eventually(
        "the rest to be unmatched",
        lambda: shop.answer("by_shop") == ["9", "4", "90"],
    )
    said = shop.seamline(
        "explain", "shop.ordered", "--key", "shop=s", "--window", "2026-01-05", "--rows", "20"
    )
    assert "version 0 whole row 1" in said and "version 1 row 3" in said, said
    shop.seamline("stream", "stop", "shop")
    assert stop_stream(shop.layout, timeout=120)
    assert "nothing is wrong" in shop.seamline("audit", "shop")
