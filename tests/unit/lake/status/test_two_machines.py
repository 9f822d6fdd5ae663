"""Two machines at one bucket: what is said of a stream on the one is known on the other, and told once by both."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.test_supervisor import eventually
from tests.faults.rig.store_proxy import StoreProxy, Trouble
from tests.unit.clocks import Clock
from tests.unit.shop import sales_pipeline

from seamline.lake.status.marks import (
    RECONCILED,
    REFUSED,
    find_stale_reconcile,
    leave_mark,
    locate_marks,
    read_mark,
)
from seamline.lake.status.stream_words import Publisher, read_words_elsewhere
from seamline.lake.storage.layout import Layout
from seamline.lake.store import bucket as buckets
from seamline.lake.store.locations import Location
from seamline.lake.store.shared_objects import find_shared_object
from seamline.lake.tables.control_table import TTL, ControlTable, Desired, Lease
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.errors import GaveUp
from seamline.model.protocol.alert import AlertKind
from seamline.model.time.intervals import Interval
from seamline.orchestration.freshness_deadline import alert_each_once
from seamline.orchestration.reconciling import reason_to_leave
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.stream_state import Actual
from seamline.runtime.processes import own_process_name
from seamline.runtime.sightings import Sighting
from seamline.spark.stream.driver_heartbeat import Heartbeat as DriverHeartbeat
from seamline.spark.stream.driver_heartbeat import write_heartbeat
from seamline.supervisor.alert_notification import notify_alerts
from seamline.supervisor.board import read_board
from seamline.supervisor.observe import observe
from seamline.supervisor.outside import read_stream_status
from seamline.supervisor.process import supervise
from seamline.supervisor.restart_pace import Pace
from seamline.supervisor.supervisor_heartbeat import (
    GAVE_UP,
    STOPPED,
    Heartbeat,
    Identity,
    ensure_stream_folder,
)

pytestmark = pytest.mark.slow
Machine = Callable[[str], Path]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALLS: list[str] = []


def on_alert(**said: str) -> None:
    """Note what is told."""
    CALLS.append(f"{said['alert']} {said['state']}")


def silent(text: str) -> None:
    """Say nothing."""


@pytest.fixture
def layout(lake: Location) -> Layout:
    return Layout(lake, "shop")


def say_of(layout: Layout, home: Path, lease: Lease, state: str = "running", **more) -> None:
    """Let supervisor and driver of a machine say something, and the supervisor put it into the bucket."""
    ensure_stream_folder(home, "shop")
    me = Identity.of(os.getpid())
    now = datetime.now(UTC)
    Heartbeat("shop", me, lease.token, state, now, me, **more).write(home, now=now)
    said = DriverHeartbeat(
        me.pid, lease.token, 7, "", 1, 0, {"T/0": 42}, {}, topics={"T": "shop.orders"}, process=me.name
    )
    write_heartbeat(home / "streams/shop/driver.json", replace(said, at=now.isoformat()))
    publisher = Publisher(layout, every=999, say=silent)
    publisher.close(within=30)
    assert not publisher.thread.is_alive()


def begin(layout: Layout, *, reason: str = "") -> Lease:
    control = ControlTable.ensure(layout)
    control.want(Desired.RUNNING, actor="ada", reason=reason, now=NOW)
    return control.take("host:1:1", process=own_process_name(), now=datetime.now(UTC))


def look(layout: Layout) -> Observation:
    return observe("shop", layout, None, broker=False)


def test_a_stream_is_seen_from_another_machine(
    layout: Layout, be_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's other workers and pages took it for one that nobody knows."""
    home = be_machine("a")
    lease = begin(layout)
    be_machine("b")
    assert look(layout).actual is Actual.UNKNOWN
    be_machine("a")
    say_of(layout, home, lease, strikes=2, starts=3, last_error="boom")
    clock = Clock()
    sight = {layout.table("control"): Sighting(TTL.total_seconds(), clock)}
    monkeypatch.setattr("seamline.lake.tables.control_poll._watched", sight)
    be_machine("b")
    found = look(layout)
    assert (found.actual, found.restarts, found.strikes, found.last_error) == (Actual.RUNNING, 2, 2, "boom")
    assert found.lag.records == 42
    assert "runs in another container or machine" in found.detail or "runs on host" in found.detail
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(layout.warehouse))
    assert read_stream_status("shop").running
    # Its words stay the same while the store is away for whoever says them: the lease alone says that it lives.
    clock.now += TTL.total_seconds() - 1
    assert look(layout).actual is Actual.RUNNING
    ControlTable.ensure(layout).renew(lease, now=NOW)
    look(layout)
    clock.now += TTL.total_seconds() - 1
    assert look(layout).actual is Actual.RUNNING
    clock.now += 2
    assert look(layout).actual is Actual.GONE
    assert not read_stream_status("shop").running


def test_one_that_has_given_up_is_not_started_on_another_machine(
    layout: Layout, be_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that did not know of it began anew, five failures at a time."""
    home = be_machine("a")
    lease = begin(layout)
    say_of(layout, home, lease, GAVE_UP, strikes=5, last_error="the disk is on fire")
    control = ControlTable.ensure(layout)
    control.release(lease)
    be_machine("b")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(layout.warehouse))
    with pytest.raises(GaveUp, match="on fire"):
        reason_to_leave("shop", control)
    control.restart(actor="ada", reason="mended", now=NOW)
    assert reason_to_leave("shop", control) == ""


def test_an_earlier_holder_says_nothing_over_a_later_one(layout: Layout, be_machine: Machine) -> None:
    """It may have slept, and not know yet that it has lost its lease."""
    first_home = be_machine("a")
    first = begin(layout)
    say_of(layout, first_home, first)
    ControlTable.ensure(layout).release(first)
    home = be_machine("b")
    second = begin(layout)
    say_of(layout, home, second)
    assert read_words_elsewhere(layout) is None
    be_machine("a")
    say_of(layout, first_home, first, STOPPED)
    found = read_words_elsewhere(layout)
    assert found and found["token"] == second.token
    assert found["supervisor"]["state"] == "running"
    # What somebody else has put there is nobody's words.
    layout.status("stream").write_bytes(b"{}")
    assert read_words_elsewhere(layout) is None
    say_of(layout, first_home, first, STOPPED)
    be_machine("c")
    assert (read_words_elsewhere(layout) or {})["token"] == first.token


def test_it_is_one_request_each_time(shaky: Location, proxy: StoreProxy, be_machine: Machine) -> None:
    """Requests are billed: half a million puts a month, and nothing is read but at first."""
    layout, home = Layout(shaky, "shop"), be_machine("a")
    say_of(layout, home, begin(layout))
    publisher = Publisher(layout, every=999, say=silent)
    before = len(proxy.seen)
    for _ in range(3):
        publisher.try_publish()
    assert [method for method, _ in proxy.seen[before:]] == ["GET", "PUT", "PUT", "PUT"]
    assert {path.rpartition("/")[2] for _, path in proxy.seen[before:]} == {"stream.json"}
    publisher.close(within=30)


def test_a_store_that_takes_no_words_ends_no_stream(
    shaky: Location, proxy: StoreProxy, be_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed all the while, and the words are there once the store takes them."""
    monkeypatch.setattr(buckets, "UNKNOWN_AFTER", timedelta(seconds=0.3))
    layout, home, halt, codes = Layout(shaky, "shop"), be_machine("a"), threading.Event(), []
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=0.3))
    proxy.strike(Trouble.REFUSED, "/_status/", times=9_999)
    pace = Pace(tick=0.02, renew=0.05, grace=5)
    thread = threading.Thread(
        target=lambda: codes.append(
            supervise("shop", layout, command=lambda _: ["sleep", "600"], pace=pace, stop=halt)
        ),
        daemon=True,
    )
    control = ControlTable.ensure(layout)
    thread.start()
    eventually(lambda: proxy.struck[Trouble.REFUSED] >= 2)
    first = eventually(lambda: control.read().lease)
    eventually(lambda: (lease := control.read().lease) and lease.beat > first.beat + 2)
    beat = Heartbeat.read(home, "shop")
    assert beat and beat.running and beat.starts == 1
    proxy.clear()
    shared = find_shared_object(layout.status("stream"))
    assert shared
    found = eventually(lambda: shared.read()[0])
    assert found["token"] == first.token
    halt.set()
    thread.join(60)
    assert codes == [0]
    assert (shared.read()[0] or {})["supervisor"]["state"] == STOPPED


def test_words_of_the_own_machine_need_no_store(
    shaky: Location, proxy: StoreProxy, be_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is beside the supervisor sees that it lives."""
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=0.3))
    layout, home = Layout(shaky, "shop"), be_machine("a")
    say_of(layout, home, begin(layout))
    proxy.strike(Trouble.SLOW_DOWN, "/_status/stream.json$", times=9_999)
    assert read_words_elsewhere(layout) is None
    be_machine("b")
    with pytest.raises(OSError, match="stream.json"):
        read_words_elsewhere(layout)


def test_marks_are_of_all_machines(layout: Layout, be_machine: Machine) -> None:
    """Airflow's task that reconciles may be on another worker each time."""
    be_machine("a")
    leave_mark(layout, RECONCILED, now=NOW)
    be_machine("b")
    assert read_mark(layout, REFUSED) is None
    assert find_stale_reconcile(layout, now=NOW + timedelta(minutes=11)) == NOW
    leave_mark(layout, RECONCILED, now=NOW + timedelta(minutes=5))
    be_machine("a")
    assert find_stale_reconcile(layout, now=NOW + timedelta(minutes=11)) is None
    told: list[Interval] = []
    late = Interval(NOW, NOW + timedelta(hours=1))
    for name in ("a", "b"):
        be_machine(name)
        alert_each_once(locate_marks(layout, "late"), [late], told.append)
    assert told == [late]


def refused_shop(layout: Layout) -> CompiledPipeline:
    """Return a pipeline of whose stream a supervisor was refused: something to tell."""
    CALLS.clear()
    leave_mark(layout, REFUSED, now=NOW, why="b holds it")
    return compile_pipeline(replace(sales_pipeline().definition, on_alert=f"{__name__}.on_alert"))


def tell(pipeline: CompiledPipeline, layout: Layout, seconds: float = 0.0) -> list[AlertKind]:
    at = NOW + timedelta(seconds=seconds)
    found = notify_alerts(pipeline, layout, broker=False, env={}, now=at, say=silent)
    return [each.kind for each in found]


def test_an_alert_is_told_once_by_two_machines(layout: Layout, be_machine: Machine) -> None:
    """The supervisor's machine looks four times a minute, and a worker every two: it was told twice."""
    be_machine("a")
    pipeline = refused_shop(layout)
    for seconds, name in enumerate("abab"):
        be_machine(name)
        assert tell(pipeline, layout, seconds) == [AlertKind.LEASE]
    assert CALLS == ["lease_refused raised"]
    assert [each.kind for each in look(layout).alerts] == [AlertKind.LEASE]
    for name in "ba":
        be_machine(name)
        assert tell(pipeline, layout, 601) == []
    assert CALLS == ["lease_refused raised", "lease_refused cleared"]


@pytest.mark.parametrize("trouble", [Trouble.LOST_REPLY, Trouble.CONFLICT])
def test_an_alert_is_told_once_whatever_becomes_of_a_reply(
    shaky: Location, proxy: StoreProxy, be_machine: Machine, trouble: Trouble
) -> None:
    """Who has put it there must know that it is he who tells."""
    layout = Layout(shaky, "shop")
    be_machine("a")
    pipeline = refused_shop(layout)
    proxy.strike(trouble, "/_status/alerts.json$", method="PUT", times=2)
    tell(pipeline, layout)
    be_machine("b")
    tell(pipeline, layout, 120)
    assert proxy.struck[trouble] == 2
    assert CALLS == ["lease_refused raised"]
    assert read_board(layout).telling == ()


def test_on_disk_nothing_is_put_beside_the_tables(tmp_path: Path, be_machine: Machine) -> None:
    """All of it is a file of SEAMLINE_HOME, as fast as ever."""
    layout, home = Layout(tmp_path / "lake", "shop"), be_machine("a")
    say_of_disk = Publisher(layout, every=0.001, say=silent)
    assert not say_of_disk.thread.is_alive()
    leave_mark(layout, RECONCILED, now=NOW)
    pipeline = refused_shop(layout)
    assert tell(pipeline, layout) == [AlertKind.LEASE]
    assert not list((tmp_path / "lake").rglob("_status"))
    assert (home / "streams/shop/alerts.json").exists()
    assert locate_marks(layout, "late") == home / "late/shop"
    assert read_words_elsewhere(layout) is None
    say_of_disk.close()
