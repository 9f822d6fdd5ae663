"""What epochs and builds cost, in counts that no machine changes: whoever makes one larger has to say so here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.faults.rig.trial import eventually
from tests.faults.rig.workload import Log, Workload, definition, encoded, send

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.local.stack import StreamStack
from seamline.model.protocol.job_arguments import BuildJob
from seamline.spark.build.build import build_intervals
from seamline.spark.build.fast_path import list_touched_files
from seamline.spark.stream.driver_loop import Driver

TOPIC, PARTITIONS = "costs.points", 3
EPOCHS, RECORDS = 5, 300
TABLES = ("master", "ledger", "slices")


@pytest.fixture
def driver(
    kafka: KafkaConnection, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Driver]:
    """A driver of this process, reading a topic."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
    stack = StreamStack(tmp_path, definition("costs", TOPIC, limit=10_000), kafka, "costs")
    for name, value in stack.settings.items():
        monkeypatch.setenv(name, value)
    control = ControlTable.ensure(stack.layout)
    control.want(Desired.RUNNING, actor="test", reason="to count", now=datetime.now(UTC))
    before = set(threading.enumerate())
    made = Driver(stack.pipeline, stack.layout, control.take("test", now=datetime.now(UTC)).token, tmp_path)
    made.start(spark)
    running = threading.Thread(target=made.run)
    running.start()
    yield made
    made.stopping.set()
    running.join(60)
    assert not running.is_alive()
    asking = {each for each in threading.enumerate() if each.name.startswith("kafka-io")}
    assert not asking - before, "A driver that has ended still talks to Kafka."
    with TopicAdmin(kafka) as admin:
        admin.delete_topic(TOPIC)


def jobs(spark: SparkSession) -> int:
    """Count the jobs that Spark has ever begun."""
    count: int = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    return count


def tables(driver: Driver) -> dict[str, Table]:
    """Open what an epoch without refusals writes."""
    [view] = driver.writer.pipeline.views
    layout = driver.layout
    return {
        "master": Table.open(layout.table("master")),
        "ledger": Table.open(layout.table("ledger")),
        "slices": Table.open(layout.slices(view)),
    }


def await_read(driver: Driver, count: int) -> None:
    """Wait until so many records are held."""

    def read() -> int:
        return sum(len(part) for epoch in Ledger.ensure(driver.layout).read() for part in epoch.ranges)

    eventually("all to be read", lambda: read() == count)


def test_an_epoch_is_one_spark_job_and_one_commit_per_table(
    driver: Driver, kafka: KafkaConnection, spark: SparkSession
) -> None:
    """A small epoch is one task, and so one file of each."""
    work, log = Workload(7, partitions=PARTITIONS), Log()
    with TopicAdmin(kafka) as admin:
        topic_id = admin.topic_id(TOPIC)

    def sent(count: int) -> None:
        send(kafka, TOPIC, topic_id, work, count, log)
        await_read(driver, len(log))

    sent(RECORDS)
    with driver.lock:
        before = {name: (table.version, table.actions().num_rows) for name, table in tables(driver).items()}
        first, began = driver.writer.master.epoch, jobs(spark)
    for _ in range(EPOCHS):
        sent(RECORDS)
    with driver.lock:
        after = {name: (table.version, table.actions().num_rows) for name, table in tables(driver).items()}
        ended, last = jobs(spark), driver.writer.master.epoch
    made = [epoch for epoch in Ledger.ensure(driver.layout).read() if first < epoch.number <= last]
    reading = [epoch for epoch in made if epoch.ranges]
    assert EPOCHS <= len(reading) <= len(made)
    assert ended - began == len(reading)
    commits = {name: after[name][0] - before[name][0] for name in TABLES}
    assert commits == {"master": len(made), "ledger": len(made), "slices": len(reading)}
    files = {name: after[name][1] - before[name][1] for name in TABLES}
    assert files == {"master": len(reading), "ledger": len(made), "slices": len(reading)}


def test_a_build_reads_the_files_of_its_interval(
    driver: Driver, kafka: KafkaConnection, spark: SparkSession
) -> None:
    """It is one job of Spark's, and files of another day are not touched."""
    days = [driver.pipeline.grid.of(datetime(2024, 1, day, 12, tzinfo=UTC)) for day in (5, 6)]
    for number, day in enumerate(days):
        with RecordWriter(kafka) as writer:
            for each in range(RECORDS):
                moment = day.start + each * timedelta(minutes=1)
                value = encoded(f"p{number}", each, moment.isoformat())
                writer.send(TOPIC, key=b"k", value=value, partition=each % PARTITIONS)
        await_read(driver, RECORDS * (number + 1))
    eventually("an edge", lambda: Master.open(driver.layout).edge == Master.open(driver.layout).epoch)
    master = Master.open(driver.layout)
    files = Files.of(master.table)
    [first, second] = [
        {each.path for each in list_touched_files(driver.pipeline, files, [day], master.edge)} for day in days
    ]
    assert first and second and first.isdisjoint(second)
    assert first | second == {*files.paths}
    began = jobs(spark)
    rows = build_intervals(
        spark, driver.pipeline, driver.layout, BuildJob("costs", "one", master.edge, (days[0],))
    )
    assert jobs(spark) - began == 1
    assert [row.rows_read for row in rows] == [RECORDS]
