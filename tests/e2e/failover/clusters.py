"""Two brokers, of which one has the records of the other at other offsets, and a stream that reads both in turn."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable
from kafka import KafkaProducer
from tests.e2e.importing.commands import Commands
from tests.ports import free_ports
from tests.services.broker import TiedBroker

from seamline.kafka.admin import TopicAdmin
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout
from seamline.model.protocol.epoch import Epoch
from seamline.supervisor.supervisor_heartbeat import Heartbeat

BEGIN = datetime(2026, 1, 5, 6, tzinfo=UTC)
TOPIC = "shop.orders"
PARTS = 2
DEFINITION = """
from seamline import *

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="shop.orders",
        connection="kafka_a",
        schema="id BIGINT NOT NULL, shop STRING, at TIMESTAMP NOT NULL",
        event_time="at",
        {identity}
        watermark=Watermark("1 minute", idle_after="2 seconds"),
    ),
    views=[
        View("by_shop", keys=["shop"], window=Tumbling("1 day"), measures={{"n": count(), "ids": sum("id")}}),
    ],
    stream=Stream(trigger="100 milliseconds"),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""
IDENTITY = 'event_id=["id"], dedup_within="1 day",'


def start_broker(home: Path) -> TiedBroker:
    """Start a broker of its own: an identity of its own, too."""
    port = free_ports(2)
    broker = TiedBroker(home, port, port + 1)
    broker.start()
    return broker


def send(broker: TiedBroker, ids: range, *, topic: str = TOPIC, sent: datetime = BEGIN) -> None:
    """Send orders with the Kafka time of each second, by turns to the partitions."""
    producer = KafkaProducer(**broker.connection.for_client())
    for id in ids:
        at = sent + timedelta(seconds=id)
        value = {"id": id, "shop": "s", "at": f"{BEGIN + timedelta(seconds=id):%Y-%m-%dT%H:%M:%S}Z"}
        producer.send(
            topic,
            value=json.dumps(value).encode(),
            partition=id % PARTS,
            timestamp_ms=int(at.timestamp() * 1000),
        )
    producer.flush()
    producer.close()


class Clusters(Commands):
    """A stream, and brokers by the names of their connections."""

    def __init__(self, home: Path, *, identity: str = IDENTITY) -> None:
        self.layout = Layout(home / "warehouse", "shop")
        super().__init__(home, None, shop=DEFINITION.format(identity=identity))
        self.brokers: dict[str, TiedBroker] = {}

    def add(self, name: str, *, shift: int) -> TiedBroker:
        """Start a broker whose topic begins with so many records per partition that another pipeline has deleted."""
        broker = self.brokers[name] = start_broker(self.home / name)
        told = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.connection.brokers}}
        self.env[f"AIRFLOW_CONN_{name.upper()}"] = json.dumps(told)
        with TopicAdmin(broker.connection) as admin:
            admin.create_topic(TOPIC, PARTS)
            if shift:
                send(broker, range(shift * PARTS), sent=BEGIN - timedelta(days=1))
                admin.delete_records(TOPIC, dict.fromkeys(range(PARTS), shift))
        return broker

    def ends(self, name: str) -> dict[int, int]:
        """Return where the topic ends on a broker."""
        with TopicAdmin(self.brokers[name].connection) as admin:
            return admin.end_offsets(TOPIC)

    def read_ids(self) -> Counter[int]:
        """Count the rows of the master by their ids; those that are known as copies are left out."""
        place = self.layout.table("master")
        if not Path(str(place)).exists():
            return Counter()
        rows = DeltaTable(str(place)).to_pyarrow_table()
        flagged = (
            rows["_duplicate"].to_pylist() if "_duplicate" in rows.column_names else [None] * rows.num_rows
        )
        return Counter(id for id, copy in zip(rows["id"].to_pylist(), flagged, strict=True) if not copy)

    def epochs(self) -> list[Epoch]:
        """Return the ledger."""
        return Ledger.ensure(self.layout).read()

    def stopped(self) -> bool:
        """Return whether no supervisor and no driver is there."""
        beat = Heartbeat.read(self.home, "shop")
        return beat is None or not (beat.running or beat.supervisor.alive())

    def kill_driver(self) -> None:
        """Kill the driver and its JVM, if one is there."""
        beat = Heartbeat.read(self.home, "shop")
        if beat and beat.driver and beat.driver.alive():
            os.kill(beat.driver.pid, signal.SIGKILL)

    def answer(self) -> list[str]:
        """Return the count and the sum of ids of the day, as the stream answers."""
        out = self.seamline("query", "shop.by_shop", "--format", "csv")
        rows = [line.split(",") for line in out.splitlines() if line.startswith('"s"')]
        return rows[0][3:5] if rows else []
