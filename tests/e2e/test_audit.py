"""Audits of a topic on a real broker: every fault is injected, found and named, and what is none raises no alarm."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from seamline.cli import main
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.lake.log.master import Master
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.audits_table import Audits
from seamline.model.compile.catalog import load_catalog
from seamline.model.protocol.audit import Audit, Wrong
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, ranges_between
from seamline.spark.stream.epoch_writer import Writer
from seamline.testing.engine import RAW

DEFINITION = """
from seamline import *

audited = Pipeline(
    name="audited",
    source=KafkaSource(
        topic="TOPIC",
        schema="id BIGINT NOT NULL, customer STRING, at TIMESTAMP NOT NULL",
        event_time="at",
    ),
    views=[View("by_customer", keys=["customer"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="2026-01-01"),
)
"""
SENT = 200


class Reading:
    """A topic of two partitions, and a stream of this process that reads it when it is told to."""

    def __init__(self, home: Path, kafka: KafkaConnection, topic: str) -> None:
        self.kafka, self.topic, self.sent = kafka, topic, 0
        (home / "pipelines").mkdir()
        (home / "pipelines" / "audited.py").write_text(DEFINITION.replace("TOPIC", topic))
        self.pipeline = load_catalog(home / "pipelines").pipeline("audited")
        self.layout = Layout(home / "warehouse", "audited")
        with TopicAdmin(kafka) as admin:
            admin.create_topic(topic, 2)
            self.id = admin.topic_id(topic)
        self.writer = Writer(self.layout, self.pipeline, 1)
        self.ends: dict[Lane, int] = {}

    def value(self) -> bytes:
        """Make one record; every tenth is refused."""
        self.sent += 1
        event: dict[str, Any] = {
            "id": self.sent,
            "customer": "abc"[self.sent % 3],
            "at": "2026-01-02T03:04:05Z",
        }
        return json.dumps(event if self.sent % 10 else {"customer": "d"}).encode()

    def send(self, count: int = SENT, partitions: int = 2) -> None:
        """Write records."""
        with RecordWriter(self.kafka) as out:
            for number in range(count):
                out.send(self.topic, value=self.value(), partition=number % partitions)

    def transaction(self, count: int, *, good: bool) -> None:
        """Write records in a transaction, to partition 0."""
        producer = KafkaProducer(**self.kafka.for_client(), transactional_id=f"{self.topic}.tx")
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(count):
            producer.send(self.topic, value=self.value(), partition=0)
        producer.flush()
        producer.commit_transaction() if good else producer.abort_transaction()
        producer.close()

    def read(self, *, without: tuple[int, ...] = ()) -> None:
        """Hold one epoch of all there is; ``without`` some offsets, as if they had been lost on the way."""
        with TopicAdmin(self.kafka) as admin:
            ends = {Lane(self.id, part): at for part, at in admin.end_offsets(self.topic).items()}
        rows = []
        consumer = KafkaConsumer(
            **self.kafka.for_client(), isolation_level="read_committed", auto_offset_reset="earliest"
        )
        for lane, end in ends.items():
            place = TopicPartition(self.topic, lane.partition)
            consumer.assign([place])
            consumer.seek(place, self.ends.get(lane, 0))
            while consumer.position(place) < end:
                rows += [each for each in consumer.poll(100).get(place, ()) if each.offset not in without]
        consumer.close()
        number = self.writer.take_number()
        config = KernelConfig(
            pipeline=self.pipeline,
            topic_ids={self.topic: self.id},
            token=1,
            epoch=number,
            committed={},
            views=self.writer.current,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
        )
        result = run(raw(rows).to_batches(), config)
        epoch = Epoch(
            number=number,
            token=1,
            committed_at=datetime.now(UTC),
            record_version=self.pipeline.record_version,
            edge=True,
            ranges=ranges_between(self.ends, ends),
            accepted=dict(result.accepted),
            refused=dict(result.refused),
        )
        self.writer.commit(epoch, result, self.writer.current)
        self.ends = ends

    def audit(self) -> tuple[int, Audit]:
        """Audit by the command; give its exit code and what it kept."""
        code = main(["audit", "audited"])
        return code, Audits.ensure(self.layout).newest()[0]


def raw(records: list[Any]) -> pa.Table:
    """Make raw rows of what a consumer gave."""
    count = len(records)
    columns = {
        "key": pa.nulls(count, pa.binary()),
        "value": pa.array([each.value for each in records], pa.binary()),
        "headers": pa.nulls(count, pa.string()),
        "topic": pa.array([each.topic for each in records], pa.string()),
        "partition": pa.array([each.partition for each in records], pa.int32()),
        "offset": pa.array([each.offset for each in records], pa.int64()),
        "timestamp": pa.repeat(
            pa.scalar(datetime(2026, 1, 2, 4, tzinfo=UTC), pa.timestamp("us", "UTC")), count
        ),
    }
    return pa.table(columns, schema=RAW)


@pytest.fixture
def reading(
    tmp_path: Path, kafka: KafkaConnection, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Reading:
    """A topic of a test's own."""
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.brokers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    return Reading(tmp_path, kafka, f"audit.{request.node.name}")


def test_what_is_no_fault_raises_no_alarm(reading: Reading, capsys: pytest.CaptureFixture[str]) -> None:
    """Transactions, aborted and not, retention, a new partition, lag and an idle topic."""
    reading.send()
    reading.transaction(30, good=True)
    reading.transaction(20, good=False)
    reading.send()
    reading.read()
    code, found = reading.audit()
    first, second = found.lanes
    assert (code, found.findings) == (0, ())
    # A marker ends each transaction; what was aborted are offsets, too.
    assert (first.records, first.blank, first.untold) == (230, 22, 0)
    assert (second.records, second.blank, second.waiting) == (200, 0, 0)
    assert sum(each.rows for each in found.intervals.values()) + found.reasons["missing field id"] == 430
    with TopicAdmin(reading.kafka) as admin:
        admin.add_partitions(reading.topic, 3)
        admin.delete_records(reading.topic, {0: 140})
    reading.send(30, partitions=3)
    code, found = reading.audit()
    assert code == 0
    assert [(each.waiting, each.untold + each.blank) for each in found.lanes] == [(10, 22), (10, 0), (10, 0)]
    assert found.lanes[0].untold == 10
    assert "10 offsets that Kafka no longer knows" in capsys.readouterr().out


def test_one_record_that_was_lost_on_the_way_is_named(
    reading: Reading, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger says that its offset was read, no count is wrong, and no table has it."""
    reading.send()
    reading.transaction(5, good=True)
    reading.read(without=(57,))
    code, found = reading.audit()
    assert code == 39
    assert [(each.wrong, each.count) for each in found.findings] == [(Wrong.LOST, 1), (Wrong.LOST, 1)]
    assert all(each.said.endswith("not in the log: 57") for each in found.findings)
    assert "lost: partition 1 of topic id" in capsys.readouterr().out


def test_rows_that_are_gone_or_there_twice_are_named(reading: Reading) -> None:
    """By the offset, by the epoch's count, and by what the slices make of it."""
    reading.send()
    reading.read()
    Master.open(reading.layout).table.handle.delete(
        "_partition = 1 AND _offset = 3", commit_properties=build_commit_properties({})
    )
    code, found = reading.audit()
    assert code == 39
    assert {each.wrong for each in found.findings} == {Wrong.LOST, Wrong.MISCOUNTED, Wrong.SLICES}
    [lost] = [each.said for each in found.findings if each.wrong is Wrong.LOST]
    assert lost.endswith(": 3")


def test_an_audit_without_a_broker_says_so(
    reading: Reading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing can be told of what Kafka has; that is no finding."""
    reading.send(20)
    reading.read()
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setattr("seamline.supervisor.auditing.ANSWERS_WITHIN", 1.0)
    assert main(["audit", "audited"]) == 10
    assert "No Kafka broker answers at localhost:1" in capsys.readouterr().err
