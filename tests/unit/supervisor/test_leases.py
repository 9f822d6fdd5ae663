"""Leases by beats: whatever the clocks on the walls say, the living keep theirs, and nobody waits long for the dead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from tests.unit.clocks import Clock

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_poll import find_shown_lease
from seamline.lake.tables.control_table import TTL, ControlTable, Desired, Lease
from seamline.model.errors import LeaseHeld
from seamline.runtime.processes import Life, life_of, name_process, own_process_name, process_start_mark
from seamline.runtime.sightings import Sighting, Standing
from seamline.supervisor.belief import Belief, Watchdog
from seamline.supervisor.supervisor_heartbeat import Identity

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECONDS = TTL.total_seconds()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "shop")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits to be killed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_a_dead_holder_is_waited_for_once_whatever_its_clock_said(layout: Layout, hours: int) -> None:
    """Its clock was ahead, and the stream stood still until the others had caught up; or behind, and it lived."""
    control, clock = ControlTable.ensure(layout), Clock()
    dead = control.take("there:1:1", now=NOW + timedelta(hours=hours))
    taken = control.take("here:1:1", now=NOW, clock=clock, wait=clock.wait)
    assert taken.token > dead.token
    assert sum(clock.waits) == SECONDS
    with pytest.raises(LeaseHeld, match="here:1:1 now holds"):
        control.renew(dead, now=NOW)


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_a_living_holder_keeps_its_lease_whatever_its_clock_says(layout: Layout, hours: int) -> None:
    """Also while it jumps: each renewal tells another time."""
    control, other, clock = ControlTable.ensure(layout), ControlTable.ensure(layout), Clock()
    lease = control.take("there:1:1", now=NOW)

    def renew() -> None:
        nonlocal lease
        if len(clock.waits) % 10 == 0:
            lease = control.renew(lease, now=NOW + timedelta(hours=hours * (-1) ** len(clock.waits)))

    clock.meanwhile = renew
    for _ in range(3):
        with pytest.raises(LeaseHeld, match="there:1:1 holds the lease"):
            other.take("here:1:1", now=NOW, clock=clock, wait=clock.wait)
    assert len(clock.waits) == 30
    assert control.renew(lease, now=NOW).token == lease.token


def test_a_taker_that_slept_looks_once_more_before_it_takes(layout: Layout) -> None:
    """Its clock went on: that the time has passed says nothing unless the beat stood still all of it."""
    control, other = ControlTable.ensure(layout), ControlTable.ensure(layout)
    lease, clock = control.take("there:1:1", now=NOW), Clock()

    def sleep() -> None:
        clock.now += 3600
        control.renew(lease, now=NOW)

    clock.meanwhile = sleep
    with pytest.raises(LeaseHeld):
        other.take("here:1:1", now=NOW, clock=clock, wait=clock.wait)
    assert len(clock.waits) == 1


def test_a_beat_at_the_last_moment_refuses_the_taker(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look and the commit: the commit is conditional on what was looked at."""
    control, other, clock = ControlTable.ensure(layout), ControlTable.ensure(layout), Clock()
    lease, write = control.take("there:1:1", now=NOW), ControlTable._write

    def beaten(self: ControlTable, *args: object) -> None:
        if self is other and control.read().lease == lease:
            control.renew(lease, now=NOW)
        write(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ControlTable, "_write", beaten)
    with pytest.raises(LeaseHeld):
        other.take("here:1:1", now=NOW, clock=clock, wait=clock.wait)
    assert control.renew(lease, now=NOW).token == lease.token


def test_what_people_decide_is_no_beat(layout: Layout) -> None:
    """A dead holder would live for as long as somebody presses buttons; and upkeep would keep it alive."""
    control, other, clock = ControlTable.ensure(layout), ControlTable.ensure(layout), Clock()
    control.take("there:1:1", now=NOW)
    clock.meanwhile = lambda: control.want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    other.take("here:1:1", now=NOW, clock=clock, wait=clock.wait)
    assert sum(clock.waits) == SECONDS


def test_a_holder_that_is_gone_is_not_waited_for(layout: Layout, child: subprocess.Popen[bytes]) -> None:
    """After kill -9 on the same machine the next supervisor begins at once; a live one is asked for its beat."""
    control, clock = ControlTable.ensure(layout), Clock()
    lease = control.take("here:2:2", process=name_process(child.pid), now=NOW)
    clock.meanwhile = lambda: control.renew(lease, now=NOW)
    with pytest.raises(LeaseHeld):
        ControlTable.ensure(layout).take("here:3:3", now=NOW, clock=clock, wait=clock.wait)
    child.kill()
    child.wait()
    clock.waits.clear()
    control.take("here:3:3", now=NOW, clock=clock, wait=clock.wait)
    assert clock.waits == []


def test_a_process_of_another_place_is_unknown() -> None:
    """Another host, boot or container has processes of the same ids: that there is none here says nothing."""
    host, place, pid, born = own_process_name().split(" ")
    assert life_of(own_process_name()) is Life.ALIVE
    assert life_of(f"{host} {place} {pid} 1{born}") is Life.GONE
    for elsewhere in (
        f"other {place} {pid} {born}",
        f"{host} b:pid:[1] 99999999 {born}",
        "host 1 2.5",
        "",
        "migrate",
    ):
        assert life_of(elsewhere) is Life.UNKNOWN


def test_a_clock_that_is_set_makes_nobody_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of a process in time of day moves with the clock: by it the living were taken for dead."""
    me, told = Identity.of(psutil.Process().pid), own_process_name()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: 0.0)
    assert process_start_mark(me.pid) and me.alive() and life_of(told) is Life.ALIVE


def test_belief_ends_before_anybody_may_take_the_lease(layout: Layout) -> None:
    """It counts from before the renewal was sent; an observer from after it was seen."""
    control, clock = ControlTable.ensure(layout), Clock()
    belief = Belief(clock)
    assert belief.over
    lease = control.take("there:1:1", now=NOW)
    belief.confirm(clock())
    # The reply takes its time.
    clock.now += 4
    lease = control.renew(lease, now=NOW)
    sight = Sighting(SECONDS, clock)
    while sight.look(lambda: control.read().lease) is not Standing.FREE:
        clock.wait(1)
        assert belief.over == (clock.now >= 1000 + SECONDS)
    assert belief.over
    assert clock.now == 1004 + SECONDS


def test_a_machine_that_slept_does_not_believe_any_more() -> None:
    """Its monotonic clock stood still; the one that is asked goes on."""
    clock, ended = Clock(), []
    belief = Belief(clock)
    belief.confirm(clock())
    assert not belief.over
    watchdog = Watchdog(belief, lambda: (ended.append(clock.now), watchdog.ended.set()), every=0.001)
    clock.now += 7200
    watchdog.thread.join(30)
    assert ended == [clock.now]


def test_pages_go_by_beats_once_they_have_looked_twice(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first look there is only the holder's clock to go by, which may be hours ahead or behind."""
    control, clock = ControlTable.ensure(layout), Clock()
    for hours, held in ((2, True), (-2, False)):
        monkeypatch.setattr(
            "seamline.lake.tables.control_poll._watched", {layout.table("control"): Sighting(SECONDS, clock)}
        )
        lease = control.take("there:1:1", now=NOW + timedelta(hours=hours))

        def look() -> Lease | None:
            return find_shown_lease(layout, control.read(), now=NOW)

        assert bool(look()) is held
        lease = control.renew(lease, now=NOW + timedelta(hours=hours))
        assert look() == lease
        clock.now += SECONDS
        assert look() is None


def test_it_is_waited_until_it_is_sure_who_holds_the_lease(layout: Layout) -> None:
    """Reconcile starts a supervisor where none lives, and none where one does."""
    control, clock = ControlTable.ensure(layout), Clock()
    assert control.live_lease(clock=clock, wait=clock.wait) is None
    lease = control.take("there:1:1", now=NOW)
    assert control.live_lease(clock=clock, wait=clock.wait) is None
    assert sum(clock.waits) == SECONDS
    clock.meanwhile = lambda: control.renew(lease, now=NOW)
    found = control.live_lease(clock=clock, wait=clock.wait)
    assert found and found.token == lease.token
