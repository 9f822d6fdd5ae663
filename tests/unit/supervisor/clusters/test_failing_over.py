"""A failover decided over two clusters that are lists: the log is fenced before, and all ask the other cluster then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from tests.unit.shop import START, Sale, Shop, opened

from seamline.kafka.topic_ends import TopicEnds
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.publish.forking import fork_pipeline
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.clusters import record_times
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.catalog import load_catalog
from seamline.model.errors import BadRange, FenceLost, KafkaUnavailable, OutOfStep
from seamline.model.protocol.clusters.failovers import By
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import list_end_offsets
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.savepoint import Savepoint
from seamline.plan.stream.failover_plan import FailoverRequest
from seamline.spark.stream.decisions import register_decisions
from seamline.spark.stream.epoch_writer import Writer
from seamline.supervisor.clusters import failing_over, failover_drafts
from seamline.supervisor.sources import source_ends

OLD, NEW = Lane("t", 0), Lane("n", 0)


class Admin:
    """The administration of a cluster, by the name of its connection."""

    ids: ClassVar = {"kafka_default": "t", "kafka_b": "n", "same": "n"}
    clusters: ClassVar = {"kafka_default": "one", "kafka_b": "two", "same": "one"}
    away: ClassVar[set[str]] = set()
    kind = "CreateTime"
    asked: ClassVar[list[datetime]] = []

    def __init__(self, connection: str, *, timeout: float = 0.0) -> None:
        if connection in self.away:
            raise KafkaUnavailable(f"No Kafka broker answers at {connection}.")
        self.name = connection

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def cluster_id(self) -> str:
        return self.clusters[self.name]

    def setting(self, name: str, key: str) -> str:
        return self.kind

    def offsets_at(self, name: str, instant: datetime) -> dict[int, int]:
        self.asked.append(instant)
        return {0: 42}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Three sales that were read, sent a minute apart; two clusters."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(at, sent_at=START + timedelta(minutes=at)) for at in (1, 2, 9)])
    monkeypatch.setattr(failover_drafts, "TopicAdmin", Admin)
    monkeypatch.setattr(failover_drafts, "read_airflow_connection", lambda name, env: name)
    monkeypatch.setattr(failover_drafts, "fetch_ends", fetch)
    monkeypatch.setattr(Admin, "away", set())
    monkeypatch.setattr(Admin, "asked", [])
    return made


def fetch(admin: Admin, topics: object) -> TopicEnds:
    """Describe the one topic of a cluster."""
    lane = Lane(admin.ids[admin.name], 0)
    return TopicEnds(datetime.now(UTC), {lane.topic_id: "sales"}, {lane: 0}, {lane: 50})


def ask(to: str = "kafka_b", by: By = By.OFFSETS, **more: Any) -> FailoverRequest:
    """Ask for a failover."""
    more.setdefault("offsets", {("sales", 0): 17})
    return FailoverRequest(to, by, "ada", "fire", **more)


def fail_over(shop: Shop, **asked: Any) -> failover_drafts.Drafted:
    """Decide on one."""
    return failing_over.fail_over(shop.compiled, shop.layout, ask(**asked), {})


def start(shop: Shop, token: int) -> Writer:
    """Start a driver on the cluster in force, as far as its decisions."""
    writer = Writer(shop.layout, shop.compiled, token)
    control = ControlTable.ensure(shop.layout).read()
    name = control.find_connection(shop.compiled.definition.connection)
    lane = Lane(Admin.ids[name], 0)
    topics: Any = SimpleNamespace(
        pipeline="shop",
        kafka_ids={"sales": lane.topic_id},
        require_whole=lambda ledger, decided: None,
        fetch_all_beginnings=lambda held: {lane: 0},
    )
    register_decisions(writer, topics, control, writer.repair_ledger())
    return writer


def test_a_decision_is_registered_by_the_next_start_and_by_it_alone(shop: Shop) -> None:
    """One epoch leaves the one cluster and begins the other; a second start finds nothing to do."""
    said = fail_over(shop, whole=True).lines
    assert "left: sales/0 on kafka_default, read to 3; 47 offsets were not read" in said
    assert find_connection("kafka_default", shop.layout) == "kafka_b"
    start(shop, 10)
    start(shop, 11)
    log = read_condensed_log(shop.layout)
    assert [epoch.kind for epoch in log if epoch.begun] == [EpochKind.FAILOVER]
    assert list_end_offsets(log) == {NEW: 17}
    with pytest.raises(BadRange, match="no failover that can be taken back"):
        failing_over.cancel(shop.compiled, shop.layout, actor="ada", reason="")


def test_a_driver_that_is_taken_for_dead_commits_nothing_once_a_failover_is_decided(shop: Shop) -> None:
    """It would read on where the log is left, or begin what was taken back."""
    late = Writer(shop.layout, shop.compiled, 5)
    fail_over(shop)
    with pytest.raises(FenceLost):
        commit_more(shop, late)
    late = Writer(shop.layout, shop.compiled, 20)
    failing_over.cancel(shop.compiled, shop.layout, actor="ada", reason="it is back")
    with pytest.raises(FenceLost):
        commit_more(shop, late)
    assert find_connection("kafka_default", shop.layout) == "kafka_default"
    assert list_end_offsets(read_condensed_log(shop.layout)) == {OLD: 3}


def commit_more(shop: Shop, writer: Writer) -> None:
    """Commit an empty epoch as a driver does."""
    from seamline.kernel.kernel_result import KernelResult
    from seamline.model.protocol.epoch import Epoch

    epoch = Epoch(writer.take_number(), writer.token, datetime.now(UTC), shop.compiled.record_version)
    writer.commit(epoch, KernelResult(), writer.current)


def test_a_stream_that_should_run_is_not_failed_over(shop: Shop) -> None:
    """Where it will have read to is not known."""
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.RUNNING, actor="ada", reason="", now=datetime.now(UTC))
    with pytest.raises(BadRange, match="is to be running"):
        fail_over(shop)
    control.want(Desired.STOPPED, actor="ada", reason="", now=datetime.now(UTC))
    fail_over(shop)


def test_a_partition_that_was_never_read_may_be_missing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was added a moment ago, or has waited behind the others: all that the log knows of was read."""

    def two(admin: Admin, topics: object) -> TopicEnds:
        lanes = [Lane(admin.ids[admin.name], part) for part in (0, 1)]
        ends = dict(zip(lanes, (3, 5) if admin.name == "kafka_default" else (50, 50), strict=True))
        return TopicEnds(datetime.now(UTC), {lanes[0].topic_id: "sales"}, dict.fromkeys(lanes, 0), ends)

    monkeypatch.setattr(failover_drafts, "fetch_ends", two)
    made = fail_over(shop, offsets={("sales", 0): 17, ("sales", 1): 0}).failover
    assert made.doubtful and "5 offsets were not read" in made.statement


def test_the_cluster_that_is_read_already_is_refused(shop: Shop) -> None:
    """Another address of it needs no failover; a topic that was made again there is a hole of its own."""
    with pytest.raises(BadRange, match="leads to the cluster that is already read"):
        fail_over(shop, to="same")
    with pytest.raises(BadRange, match="leads to the cluster that is already read"):
        fail_over(shop, to="kafka_default")


def test_a_decision_that_no_driver_has_registered_is_replaced(shop: Shop) -> None:
    """The person corrects a file; the second decision is about the same place as the first."""
    fail_over(shop)
    fail_over(shop, offsets={("sales", 0): 18}, whole=True)
    [one] = ControlTable.ensure(shop.layout).read().failovers
    assert (one.begun, one.closed, one.left) == ({NEW: 18}, {OLD: 3}, "kafka_default")


def test_by_time_reading_begins_before_the_last_record_that_was_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read again is counted in the log, with its event times."""
    monkeypatch.setattr(Admin, "away", {"kafka_default"})
    drafted = fail_over(shop, by=By.TIMESTAMP, offsets={}, margin=timedelta(minutes=8), whole=True)
    assert Admin.asked == [START + timedelta(minutes=1)]
    assert "up to 3 accepted and 0 refused records are read again" in drafted.failover.statement
    assert drafted.failover.begun == {NEW: 42}
    assert str(drafted.failover.bounds) == "2013-01-01T00:01:00Z/2013-01-01T00:09:00.000001Z"
    assert drafted.lines[0] == "kafka_default does not answer: No Kafka broker answers at kafka_default."
    with pytest.raises(BadRange, match="Without event_id and dedup_within"):
        fail_over(shop, by=By.EVENT_ID, offsets={})
    monkeypatch.setattr(Admin, "kind", "LogAppendTime")
    with pytest.raises(BadRange, match="at which they arrived in the other cluster"):
        fail_over(shop, by=By.TIMESTAMP, offsets={})


def test_records_of_slower_clocks_behind_the_first_are_read_again_too(shop: Shop) -> None:
    """Kafka finds one record by its time and gives all behind it: what counts twice is of all their event times."""
    shop.epoch([Sale(at, sent_at=START + timedelta(minutes=at)) for at in (20, 5, 21)])
    made = fail_over(shop, by=By.TIMESTAMP, offsets={}, margin=timedelta(minutes=5), whole=True).failover
    assert made.statement.startswith("up to 3 accepted and 0 refused records are read again")
    assert made.bounds
    assert made.bounds.start == START + timedelta(minutes=5)


def test_a_plan_reads_the_files_near_the_end_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the day of the disaster nobody waits for a read of all history; a lane that has none there is looked for."""
    for number in range(1, 5):
        shop.epoch([Sale(100 * number + at, sent_at=START + timedelta(hours=number)) for at in range(80)])
    read: list[int] = []

    def reading(paths: Sequence[str], **more: Any) -> str:
        read.append(len(paths))
        return read_parquet_sql(paths, **more)

    monkeypatch.setattr(record_times, "read_parquet_sql", reading)
    [end] = list_end_offsets(read_condensed_log(shop.layout)).values()
    last = record_times.find_last_records(shop.layout, {OLD: end})
    assert last[OLD].at == START + timedelta(hours=4) and read == [1]
    sent = record_times.count_sent_since(shop.layout, {OLD: START + timedelta(hours=4)})
    assert (sent.accepted, {*read}) == (80, {1})
    assert record_times.find_last_records(shop.layout, {OLD: end + 1_000}) == last


def test_a_log_that_has_moved_since_is_not_registered_over(shop: Shop) -> None:
    """As after a power cut that took its newest epochs, or with a master from a backup."""
    fail_over(shop)
    shop.master.table.refresh()
    control = ControlTable.ensure(shop.layout).read()
    control.failovers[0].closed[OLD] = 2  # type: ignore[index]
    writer = Writer(shop.layout, shop.compiled, 30)
    topics: Any = SimpleNamespace(pipeline="shop", kafka_ids={"sales": "n"})
    with pytest.raises(OutOfStep, match="was to be left at 2 and is read to 3"):
        register_decisions(writer, topics, control, writer.repair_ledger())


def test_whoever_asks_kafka_asks_the_cluster_in_force(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag, alerts, audits and pages would look at a cluster that is gone."""
    monkeypatch.setattr(source_ends, "read_airflow_connection", lambda name, env: name)
    asked: list[str] = []

    def tell(connection: Any, topics: object) -> TopicEnds:
        asked.append(connection)
        return TopicEnds(datetime.now(UTC), {}, {}, {})

    for _ in range(2):
        source_ends.ask_source_ends(shop.compiled.definition, shop.layout, {}, tell)
        if len(asked) == 1:
            fail_over(shop)
    assert asked == ["kafka_default", "kafka_b"]


def test_a_fork_goes_on_in_the_cluster_where_its_log_ends(shop: Shop, tmp_path: Path) -> None:
    """Its definition has the connection of the other; lanes that were left are known to it, for the way back."""
    fail_over(shop, whole=True)
    start(shop, 10)
    log = read_condensed_log(shop.layout)
    ends = list_end_offsets(log)
    folder = tmp_path / "definitions"
    (folder / "branch.py").write_text((folder / "shop.py").read_text().replace('"shop"', '"branch"'))
    branch, to = load_catalog(folder).pipeline("branch"), Layout(shop.warehouse, "branch")
    point = Savepoint("p", log[-1].number, ends, {}, shop.compiled.record_version, "ada", "", START)
    fork_pipeline(shop.compiled, shop.layout, point, branch, to)
    assert find_connection("kafka_default", to) == "kafka_b"
    assert Master.open(to).position([OLD, NEW]) == {OLD: 3, NEW: 17}
