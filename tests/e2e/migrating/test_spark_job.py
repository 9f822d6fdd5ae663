"""A Structured Streaming job moves here: both run on one topic, the difference is explained, and then it is taken over
where its checkpoint stands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.e2e.joined_world import eventually
from tests.e2e.world import ROOT
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
TOPIC = "moved.orders"
DEFINITION = """
from seamline import *

{name} = Pipeline(
    name="{name}",
    source=KafkaSource(
        topic="moved.orders",
        schema="shop STRING, amount DECIMAL(10,2), at TIMESTAMP",
        event_time="at",
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    views=[View("hourly", keys=["shop"], window=Tumbling("1 hour"), measures={{"n": count(), "total": sum("amount")}})],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2026-01-05"),
)
"""
DAY = datetime(2026, 1, 5, tzinfo=UTC)


class Moved:
    """The topic, the old job, and the definitions that take it over."""

    def __init__(self, home: Path, kafka: KafkaConnection, spark: SparkSession) -> None:
        self.home, self.kafka, self.spark = home, kafka, spark
        self.old, self.checkpoint = home / "old", home / "checkpoint"
        definitions = home / "pipelines"
        definitions.mkdir()
        for name in ("beside", "after"):
            (definitions / f"{name}.py").write_text(DEFINITION.format(name=name))
        broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers}}
        self.settings = {
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(broker),
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }

    def seamline(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Run a command of ours; return what it said on both ways."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        env = {**os.environ, **self.settings}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def send(self, *orders: tuple[str, int, str, str]) -> None:
        """Send orders: shop, amount, when it was placed, and when Kafka got it."""
        with RecordWriter(self.kafka) as writer:
            for shop, amount, placed, sent in orders:
                value = {"shop": shop, "amount": amount, "at": f"2026-01-05T{placed}:00Z"}
                hour, minute = map(int, sent.split(":"))
                at = DAY + timedelta(hours=hour, minutes=minute)
                writer.send(
                    TOPIC,
                    value=json.dumps(value).encode(),
                    partition=0,
                    timestamp_ms=int(at.timestamp() * 1000),
                )

    def run_old_job(self) -> None:
        """Let the old job read what there is: windows of an hour, late records dropped, as its users know it."""
        rows = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.kafka.brokers)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .load()
            .select(
                f.from_json(
                    f.col("value").cast("string"), "shop STRING, amount DECIMAL(10,2), at TIMESTAMP"
                ).alias("v")
            )
            .select("v.*")
            .withWatermark("at", "10 minutes")
            .groupBy(f.window("at", "1 hour").alias("hour"), "shop")
            .agg(f.count("*").alias("orders"), f.sum("amount").alias("total"))
            .select("shop", f.col("hour.start").alias("hour"), "orders", "total")
        )
        query = (
            rows.writeStream.outputMode("append").format("parquet").option("path", str(self.old))
            .option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    def last_offsets(self) -> str:
        """Return the last line of the newest file of its offsets."""
        newest = max(
            (each for each in (self.checkpoint / "offsets").iterdir() if each.name.isdigit()),
            key=lambda it: int(it.name),
        )
        return newest.read_text().splitlines()[-1]

    def read_to(self, name: str) -> int:
        """Return the offset up to which a pipeline has read."""
        layout = Layout(self.home / "warehouse", name)
        ledger = Ledger.ensure(layout).read() if Ledger.exists(layout) else []
        return max((each.end for epoch in ledger for each in epoch.ranges), default=0)


@pytest.fixture
def moved(tmp_path: Path, kafka: KafkaConnection, spark: SparkSession) -> Iterator[Moved]:
    """An empty topic."""
    made = Moved(tmp_path, kafka, spark)
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 1)
        yield made
        end_all(made.home)
        admin.delete_topic(TOPIC)


def test_a_job_is_run_beside_compared_and_taken_over(moved: Moved) -> None:
    """As docs/migrating.md says."""
    moved.send(("a", 5, "08:10", "08:10"), ("b", 7, "08:40", "08:41"), ("a", 2, "09:20", "09:20"))
    moved.send(("a", 1, "11:00", "11:00"))
    moved.run_old_job()
    # The old job has closed 08:00 and drops it; 09:00 is right in both.
    moved.send(("a", 40, "08:50", "11:05"), ("b", 3, "11:30", "11:31"), ("b", 1, "14:00", "14:00"))
    moved.run_old_job()
    moved.run_old_job()
    held = moved.last_offsets()
    assert json.loads(held) == {TOPIC: {"0": 7}}

    moved.seamline("stream", "start", "beside", "--here")
    eventually("all to be read", lambda: moved.read_to("beside") == 7)
    asked = [
        "compare",
        "beside.hourly",
        "--with",
        str(moved.old),
        "--key",
        "window_start=hour",
        "--measure",
        "n=orders",
    ]
    rows, told = moved.seamline(*asked, "--format", "csv")
    assert "4 rows equal, 1 differ, 0 only here, 0 only there." in told
    assert "1 reached Kafka late" in told
    assert "reached Kafka late" in rows and "5.00" in rows and "45.00" in rows
    moved.seamline("stream", "stop", "beside")
    assert stop_stream(Layout(moved.home / "warehouse", "beside"), timeout=120)

    moved.send(("c", 9, "15:00", "15:00"))
    _, said = moved.seamline("stream", "start", "after", "--from", '{"moved.orders": {"0": 999}}', code=5)
    assert "Kafka has offsets 0 to 8 of partition 0, not 999" in said
    said, _ = moved.seamline(
        "stream",
        "start",
        "after",
        "--from",
        held,
        "--lost-from",
        "2026-01-05",
        "--lost-to",
        "2026-01-05T15:00Z",
        "--here",
    )
    assert "7 offsets are passed over" in said
    eventually("the rest to be read", lambda: moved.read_to("after") == 8)
    rows, _ = moved.seamline("query", "after.hourly", "--format", "csv")
    [row] = rows.splitlines()[1:]
    assert '"c"' in row and "9.00" in row
    moved.seamline("stream", "stop", "after")
    assert stop_stream(Layout(moved.home / "warehouse", "after"), timeout=120)
