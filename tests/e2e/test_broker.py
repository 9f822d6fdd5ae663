"""A real broker: what Seamline asks of Kafka, and what it says when Kafka cannot answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata
from tests.ports import free_ports

from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count
from seamline.cli import main
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.first_records import read_first_records
from seamline.kafka.present_offsets import find_present_offsets
from seamline.kafka.produce import RecordWriter
from seamline.kafka.record_ranges import RangeReader
from seamline.kafka.topic_ends import SharedEnds, ends_of, oldest_from
from seamline.lake.storage.layout import Layout
from seamline.local.broker import Broker
from seamline.local.demo.stages import KEPT
from seamline.local.flights import Span, replay_flights
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange, KafkaUnavailable, SetupError, TopicMissing
from seamline.model.protocol.log_tail import Tail, hash_record_value
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.start_positions import StartPlace
from seamline.plan.stream.topic_expiry import TopicExpiry
from seamline.supervisor.sources.source_losses import find_start_offsets, offsets_now
from seamline.supervisor.sources.topic_expiry import read_topic_expiry


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started = Broker(tmp_path_factory.mktemp("kafka"), free_ports(), free_ports())
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture
def admin(broker: Broker) -> Iterator[TopicAdmin]:
    broker.start()
    with TopicAdmin(broker.connection) as connected:
        yield connected


def test_offsets_are_those_of_the_records(broker: Broker, admin: TopicAdmin) -> None:
    """Cuts are made of these numbers."""
    assert admin.create_topic("numbers", 2)
    assert not admin.create_topic("numbers", 2)
    told: list[tuple[object, int, int]] = []
    with RecordWriter(broker.connection, on_delivered=lambda *place: told.append(place)) as writer:
        for number in range(300):
            writer.send("numbers", key=b"k", value=b"%d" % number, partition=number % 3 % 2, token=number)
    assert [token for token, _, _ in told] == list(range(300))
    assert admin.end_offsets("numbers") == {0: 200, 1: 100}
    assert admin.beginning_offsets("numbers") == {0: 0, 1: 0}
    assert {(part, offset) for _, part, offset in told} == {
        (part, offset) for part, end in {0: 200, 1: 100}.items() for offset in range(end)
    }


def test_a_topic_is_created_with_its_settings(
    broker: Broker, admin: TopicAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker refuses one that it does not know the value of, by its name."""
    address = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.connection.brokers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(address))
    asked = ["topics", "create", "compacted", "--partitions", "1", "--config"]
    assert main([*asked, "cleanup.policy=sometimes"]) != 0
    assert "cleanup.policy" in capsys.readouterr().err
    assert "compacted" not in admin.topics()
    assert main([*asked, "cleanup.policy=compact", "--config", "segment.ms=1000"]) == 0
    assert admin.partitions("compacted") == [0]


def test_many_ask_by_one_connection(broker: Broker, admin: TopicAdmin) -> None:
    """One topic that is missing, or whose partition has no leader, is in no other's way."""
    names = [f"shared.{number}" for number in range(8)]
    for name in names:
        admin.create_topic(name, 2)
    with RecordWriter(broker.connection) as writer:
        writer.send(names[3], value=b"x", partition=1)
    with SharedEnds() as ask, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda name: ask(broker.connection, [name]), names))
        with pytest.raises(TopicMissing):
            ask(broker.connection, ["shared.none"])
        again = ask(broker.connection, names)
        assert len(ask._admins) == 1
    alone = ends_of(broker.connection, names)
    assert [dict(each.names) for each in found] == [{admin.topic_id(name): name} for name in names]
    assert (again.ends, again.beginnings, again.names) == (alone.ends, alone.beginnings, alone.names)
    assert sum(again.ends.values()) == 1


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_is_there_is_told_whatever_it_was_compressed_with(
    broker: Broker, admin: TopicAdmin, codec: str | None
) -> None:
    """The broker compresses as its topic says; audits and the lag read records in Python."""
    name = f"compressed.{codec}"
    admin.create_topic(name, 1, config={"compression.type": codec or "uncompressed"})
    before = datetime.now(UTC).replace(microsecond=0)
    with RecordWriter(broker.connection) as writer:
        for number in range(300):
            writer.send(name, value=b"%d" % number * 100, partition=0)
    assert find_present_offsets(broker.connection, {(name, 0): [(0, 300)]}) == {(name, 0): [(0, 300)]}
    oldest = oldest_from(broker.connection, {(name, 0): 17}, timeout=30)
    assert oldest is not None and before <= oldest <= datetime.now(UTC)


LOOK = """
import resource, sys
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.first_records import read_first_records
from seamline.kafka.topic_ends import oldest_from
from seamline.kafka.present_offsets import find_present_offsets
brokers, name = sys.argv[1:]
connection = KafkaConnection(brokers)
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (3 << 26), used + (3 << 26)))
print(find_present_offsets(connection, {(name, 0): [(0, 20)]}))
for offset in (0, 2, 17):
    print(oldest_from(connection, {(name, 0): offset}, timeout=60))
print(read_first_records(connection, {(name, 0): 17}, timeout=60)[name, 0])
"""


@pytest.mark.parametrize(
    "codec",
    [
        pytest.param("gzip", marks=pytest.mark.faults),
        pytest.param("snappy", marks=pytest.mark.faults),
        pytest.param("lz4", marks=pytest.mark.faults),
        "zstd",
    ],
)
def test_a_look_at_a_batch_takes_no_more_memory_than_what_the_broker_sends(
    broker: Broker, admin: TopicAdmin, codec: str
) -> None:
    """Supervisors and audits read places and times, a start the newest value: 192 MB suffice for 200 in one batch.

    Snappy's ten are copied as they come, and take 80 to 130 with the allocator's arenas.
    """
    name = f"huge.{codec}"
    admin.create_topic(name, 1, config={"max.message.bytes": "50000000"})
    out = KafkaProducer(
        **broker.connection.for_client(),
        compression_type=codec,
        max_request_size=(1 << 31) - 1,
        batch_size=(1 << 31) - 1,
        linger_ms=60_000,
        request_timeout_ms=120_000,
        delivery_timeout_ms=300_000,
    )
    first = parse_moment("2024-01-05T00:00:00Z")
    for number in range(20):
        at = int((first + timedelta(seconds=number)).timestamp() * 1000)
        out.send(name, value=b"0" * 10_000_000, partition=0, timestamp_ms=at)
    out.flush()
    out.close()
    done = subprocess.run(
        [sys.executable, "-c", LOOK, broker.connection.brokers, name],
        capture_output=True,
        text=True,
        check=False,
    )
    # Of what 64 MB come before, the time of the first stands.
    times = [first, first + timedelta(seconds=2), first]
    tail = Tail(17, int(first.timestamp() * 1000) + 17_000, hash_record_value(b"0" * 10_000_000))
    told = [{(name, 0): [(0, 20)]}, *times, tail]
    assert done.stdout == "".join(f"{each}\n" for each in told), (done.returncode, done.stderr[-2000:])


def test_the_record_at_an_offset_is_told(broker: Broker, admin: TopicAdmin) -> None:
    """A start compares it with what the log keeps; where there is none it takes no other for it."""
    admin.create_topic("tails", 3)
    with RecordWriter(broker.connection) as writer:
        for number in range(100):
            writer.send("tails", value=b"%d" % number, partition=number % 2)
    admin.delete_records("tails", {1: 20})
    found = read_first_records(broker.connection, {("tails", 0): 17, ("tails", 1): 3}, timeout=20)
    assert {place: (tail.offset, tail.value) for place, tail in found.items()} == {
        ("tails", 0): (17, hash_record_value(b"34")),
        ("tails", 1): (20, hash_record_value(b"41")),
    }
    assert abs(found["tails", 0].at / 1000 - datetime.now(UTC).timestamp()) < 3600
    # Where nothing is, all the time that it is given runs out.
    assert ("tails", 2) not in read_first_records(broker.connection, {("tails", 0): 17, ("tails", 2): 0})
    assert read_first_records(broker.connection, {}) == {}


def test_a_codec_that_is_not_installed_is_named(
    broker: Broker, admin: TopicAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install: no broker has refused anything. Where records are the batch's header says itself."""
    admin.create_topic("packed", 1, config={"compression.type": "snappy"})
    with RecordWriter(broker.connection) as writer:
        writer.send("packed", value=b"x" * 100, partition=0)
    monkeypatch.setattr("kafka.codec.snappy", None)
    assert find_present_offsets(broker.connection, {("packed", 0): [(0, 1)]}) == {("packed", 0): [(0, 1)]}
    with pytest.raises(SetupError, match="snappy") as refused:
        oldest_from(broker.connection, {("packed", 0): 0}, timeout=30)
    assert "kafka-python[lz4,snappy,zstd]" in refused.value.hint


def test_what_a_topic_keeps_and_since_when_is_told(broker: Broker, admin: TopicAdmin) -> None:
    """What is not read by half of that time is named before it is gone."""
    admin.create_topic("daily", 2, config={"retention.ms": "86400000"})
    admin.create_topic("ever", 1, config={"retention.ms": "-1"})
    assert (admin.retention("daily"), admin.retention("ever")) == (timedelta(days=1), None)
    now = datetime.now(UTC)
    with RecordWriter(broker.connection) as writer:
        for hours in (13, 11):
            at = int((now - timedelta(hours=hours)).timestamp() * 1000)
            writer.send("daily", value=b"x", partition=0, timestamp_ms=at)
    assert admin.offsets_at("daily", now - timedelta(hours=12)) == {0: 1, 1: 0}
    assert admin.offsets_at("daily", now) == {0: 2, 1: 0}


def test_what_is_unread_is_measured_by_time_and_by_bytes(
    broker: Broker, admin: TopicAdmin, tmp_path: Path
) -> None:
    """Nothing of four records is in the log; Kafka says how long and how much a topic keeps, and how large it is."""
    admin.create_topic("bounded", 1, config={"retention.ms": "86400000", "retention.bytes": "100000"})
    admin.create_topic("compacted", 1, config={"cleanup.policy": "compact"})
    written = int((datetime.now(UTC) - timedelta(hours=6)).timestamp() * 1000)
    with RecordWriter(broker.connection) as writer:
        for _ in range(4):
            writer.send("bounded", value=b"x" * 10_000, partition=0, timestamp_ms=written)
    assert (admin.retention_bytes("bounded"), admin.retention_bytes("compacted")) == (100_000, None)
    size = admin.partition_sizes("bounded")[0]
    layout = Layout(tmp_path, "bounded")
    found = read_topic_expiry(admin, broker.connection, "bounded", layout)
    assert found.time == pytest.approx(0.25, abs=0.01)
    assert found.bytes == pytest.approx(size / 100_000)
    assert read_topic_expiry(admin, broker.connection, "compacted", layout) == TopicExpiry(None, None)


def test_a_few_records_are_read_as_they_are(broker: Broker, admin: TopicAdmin) -> None:
    """Those of the ranges alone, in the order of the places: nulls, headers, and what a transaction took back."""
    admin.create_topic("ranges", 2)
    reader = RangeReader(broker.connection)
    with RecordWriter(broker.connection) as writer:
        for number in range(6):
            writer.send(
                "ranges", key=b"%d" % number, value=b"v" if number % 3 else None, partition=number % 2
            )
    first = reader.read({("ranges", 1): (1, 3), ("ranges", 0): (0, 2)})
    assert first is not None
    assert [first[name].to_pylist() for name in ("partition", "offset", "key", "value")] == [
        [1, 1, 0, 0],
        [1, 2, 0, 1],
        [b"3", b"5", b"0", b"2"],
        [None, b"v", None, b"v"],
    ]
    assert first["headers"].null_count == 4
    assert set(first["topic"].to_pylist()) == {"ranges"}
    [age] = {datetime.now(UTC) - each < timedelta(minutes=10) for each in first["timestamp"].to_pylist()}
    assert age

    producer = KafkaProducer(bootstrap_servers=broker.connection.brokers, transactional_id="ranges")
    producer.init_transactions()
    for value, end in ((b"taken back", producer.abort_transaction), (b"kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.send("ranges", value=value, partition=1, headers=[("a", b"1"), ("b", b"")]).get(10)
        end()
    producer.close()
    again = reader.read({("ranges", 1): (3, 7)})
    assert again is not None
    assert again["value"].to_pylist() == [b"kept"]
    assert json.loads(again["headers"][0].as_py()) == [
        {"key": "a", "value": "MQ=="},
        {"key": "b", "value": ""},
    ]
    reader.close()


def test_records_that_cannot_be_read_soon_are_left_to_others(
    broker: Broker, admin: TopicAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them then says what is wrong; and the next few are read again."""
    monkeypatch.setattr("seamline.kafka.record_ranges.SOON", 1.0)
    admin.create_topic("few", 1)
    with RecordWriter(broker.connection) as writer:
        writer.send("few", value=b"1", partition=0)
    reader = RangeReader(broker.connection)
    assert reader.read({("few", 0): (0, 2)}) is None, "it ends before that"
    assert reader.read({("few", 0): (7, 9)}) is None, "it has no such offset"
    found = reader.read({("few", 0): (0, 1)})
    assert found is not None
    assert found["value"].to_pylist() == [b"1"]
    reader.close()
    nobody = RangeReader(replace(broker.connection, brokers=f"127.0.0.1:{free_ports()}"))
    assert nobody.read({("few", 0): (0, 1)}) is None


def test_a_topic_of_the_past_is_kept_whatever_its_broker_says(admin: TopicAdmin) -> None:
    """Retention goes by the timestamps of records, and those of the demo are of 2013: any broker may have its topic."""
    admin.create_topic("past", 1, config=KEPT)
    asked = [ConfigResource(ConfigResourceType.TOPIC, "past")]
    told = admin._client.describe_configs(asked, config_filter="modified")
    assert {name: each["value"] for name, each in told["topic"]["past"].items()} == KEPT


def test_recreated_topic_has_another_id(admin: TopicAdmin) -> None:
    """The name and the offsets look the same; only the id tells that the log is another one."""
    admin.create_topic("again", 1)
    before = admin.topic_id("again")
    assert admin.topic_id("again") == before
    admin.delete_topic("again")
    admin.create_topic("again", 1)
    assert admin.topic_id("again") != before


def test_partitions_can_be_added(admin: TopicAdmin) -> None:
    """A topic grows while its stream runs."""
    admin.create_topic("wide", 2)
    admin.add_partitions("wide", 5)
    assert admin.partitions("wide") == [0, 1, 2, 3, 4]


def test_group_offsets_are_kept(admin: TopicAdmin) -> None:
    """Other people's lag tools read them."""
    admin.create_topic("lag", 2)
    admin.commit_group_offsets("seamline-lag", "lag", {0: 7, 1: 9})
    assert admin.group_offsets("seamline-lag", "lag") == {0: 7, 1: 9}


def test_a_stream_goes_on_where_a_group_of_consumers_was(
    broker: Broker, admin: TopicAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another job has read by its group; a partition that it never read, and one that Kafka has cut."""
    admin.create_topic("taken", 3)
    with RecordWriter(broker.connection) as writer:
        for partition in (0, 1, 2):
            for number in range(10):
                writer.send("taken", partition=partition, value=b"%d" % number)
    consumer = KafkaConsumer(
        **broker.connection.for_client(),
        group_id="etl: old",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([TopicPartition("taken", partition) for partition in (0, 1)])
    consumer.commit({TopicPartition("taken", at): OffsetAndMetadata(at * 2 + 4, "", -1) for at in (0, 1)})
    consumer.close()
    admin.delete_records("taken", {1: 8})
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.connection.brokers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    source = KafkaSource(topic="taken", schema="n INT, at TIMESTAMP", event_time="at")
    view = View("all", keys=[], window=Tumbling("1 hour"), measures={"n": count()})
    compiled = compile_pipeline(
        Pipeline(name="taken", source=source, views=[view], batch=Batch("1 day", "2026-01-01"))
    )
    id = admin.topic_id("taken")
    place = StartPlace.parse("group:etl: old")
    found = find_start_offsets(place, offsets_now(compiled, place), {})
    assert found.chosen == {Lane(id, 0): 4, Lane(id, 1): 8}
    assert [note.partition(":")[0] for note in found.notes] == ["taken/1", "taken/2"]
    place = StartPlace.parse("group:etl")
    with pytest.raises(BadRange, match="'etl' has recorded no offset of taken"):
        find_start_offsets(place, offsets_now(compiled, place), {})


def test_missing_topic_is_named(broker: Broker, admin: TopicAdmin) -> None:
    """A typing error in a definition must not create a topic, nor hang."""
    for ask in (admin.topic_id, admin.partitions, admin.end_offsets, admin.delete_topic):
        with pytest.raises(TopicMissing, match="'nowhere'"):
            ask("nowhere")
    with RecordWriter(broker.connection) as writer, pytest.raises(TopicMissing, match="'nowhere'"):
        writer.send("nowhere", value=b"x")
    assert "nowhere" not in admin.topics()


def test_replay_journals_what_the_topic_holds(broker: Broker, admin: TopicAdmin, tmp_path: Path) -> None:
    """The journal is the truth of the final check: each offset of the topic once, in the order of sending."""
    admin.create_topic("flights", 4)
    week = Span(parse_moment("2013-03-01"), parse_moment("2013-03-08"))
    done = replay_flights(broker.connection, "flights", 4, tmp_path / "journal.parquet", span=week)
    rows = pq.read_table(tmp_path / "journal.parquet").to_pylist()
    ends = admin.end_offsets("flights")
    assert done.records == len(rows) == sum(ends.values())
    assert {(row["partition"], row["offset"]) for row in rows} == {
        (part, offset) for part, end in ends.items() for offset in range(end)
    }
    assert [row["kafka_timestamp_ms"] for row in rows] == sorted(row["kafka_timestamp_ms"] for row in rows)


def test_busy_port_is_said_before_anything_starts(broker: Broker, tmp_path: Path) -> None:
    """A second demo on the same ports leaves nothing behind."""
    second = Broker(tmp_path / "second", broker.port, broker.controller_port)
    with pytest.raises(SetupError, match=f"Port {broker.port}"):
        second.start()
    assert not second.home.exists()


def test_a_broker_whose_command_line_is_not_there_yet_is_not_taken_for_ended(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a process's start and its first instruction the system knows no arguments of it."""
    broker.start()
    monkeypatch.setattr(psutil.Process, "cmdline", lambda _: [])
    assert broker.pid is not None


def test_data_outlive_a_kill(broker: Broker, admin: TopicAdmin) -> None:
    """The demo's second run, and a crash, find the same log under the same id."""
    admin.create_topic("kept", 1)
    with RecordWriter(broker.connection) as writer:
        writer.send("kept", value=b"x")
    before = admin.topic_id("kept")
    admin.close()
    with TopicAdmin(broker.connection, timeout=3.0) as connected:
        broker.kill()
        assert broker.pid is None
        with pytest.raises(KafkaUnavailable):
            connected.end_offsets("kept")
    with pytest.raises(KafkaUnavailable, match="No Kafka broker answers") as caught:
        TopicAdmin(broker.connection, timeout=1.0)
    assert "broker is running" in caught.value.hint
    broker.start()
    with TopicAdmin(broker.connection) as after:
        assert (after.topic_id("kept"), after.end_offsets("kept")) == (before, {0: 1})


def test_start_takes_over_a_running_broker(broker: Broker) -> None:
    """After a crash of the demo its broker may still run; a second one on its data would fail."""
    broker.start()
    other = Broker(broker.home, broker.port, broker.controller_port)
    other.start()
    assert other.pid == broker.pid
