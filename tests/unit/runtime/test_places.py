"""Containers and machines of one host name are told apart, and nobody is taken for gone from afar."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from tests.unit.clocks import Clock

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import TTL, ControlTable
from seamline.model.errors import LeaseHeld
from seamline.runtime import places, processes
from seamline.runtime.processes import Life, life_of, name_process, own_process_name
from seamline.supervisor.driver_report import DriverReport
from seamline.supervisor.supervisor_heartbeat import Identity

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BOOT, OTHER_BOOT = "5d0c1a52-0000-4000-8000-000000000001", "5d0c1a52-0000-4000-8000-000000000002"
FIRST, SECOND = "pid:[4026531836]", "pid:[4026532444]"


@pytest.fixture(autouse=True)
def places_anew() -> Iterator[None]:
    """A process learns once where it is."""
    yield
    places.distinguish_place.cache_clear()


def move_to(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    boot: str,
    ids: str,
    clock: str = places.FIRST_TIME_NAMESPACE,
) -> str:
    """Let this process be in a place of its host name; return the place's name."""
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
    (folder / "self/ns/pid").symlink_to(ids)
    (folder / "self/ns/time").symlink_to(clock)
    (folder / "self").rename(folder / str(os.getpid()))
    (folder / "self").symlink_to(str(os.getpid()))
    monkeypatch.setattr(places, "PROC", folder)
    places.distinguish_place.cache_clear()
    return places.own_place()


def test_a_host_name_tells_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine, boot, container or pod may have it, or another time from which starts are counted."""
    found = [
        move_to(monkeypatch, tmp_path / "1", BOOT, FIRST),
        move_to(monkeypatch, tmp_path / "2", OTHER_BOOT, FIRST),
        move_to(monkeypatch, tmp_path / "3", BOOT, SECOND),
        move_to(monkeypatch, tmp_path / "4", BOOT, FIRST, "time:[4026532445]"),
    ]
    monkeypatch.setenv(places.POD, " a pod ")
    found.append(move_to(monkeypatch, tmp_path / "5", BOOT, FIRST))
    # A pod of two containers has one id, and the processes of each have ids of their own.
    found.append(move_to(monkeypatch, tmp_path / "6", BOOT, SECOND))
    assert len(set(found)) == len(found)
    assert all(len(each.split(" ")) == 2 and each.startswith(f"{socket.gethostname()} ") for each in found)
    monkeypatch.delenv(places.POD)
    assert move_to(monkeypatch, tmp_path / "7", BOOT, FIRST) == found[0]


def test_a_living_holder_of_the_same_host_name_and_id_keeps_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here its id is another process's or nobody's, so that it would be taken for gone at once."""
    control, clock = ControlTable.ensure(Layout(tmp_path / "lake", "shop")), Clock()
    lease = control.take("pod:1:1", process=f"{socket.gethostname()} {BOOT}:{SECOND} 1 17", now=NOW)

    def renew() -> None:
        control.renew(lease, now=NOW)

    clock.meanwhile = renew
    with pytest.raises(LeaseHeld, match="pod:1:1 holds"):
        control.take("pod:1:2", process=own_process_name(), now=NOW, clock=clock, wait=clock.wait)
    clock.meanwhile = lambda: None
    clock.waits.clear()
    assert (
        control.take("pod:1:2", process=own_process_name(), now=NOW, clock=clock, wait=clock.wait).token
        > lease.token
    )
    assert sum(clock.waits) == TTL.total_seconds()


def test_one_who_is_called_the_same_has_no_other_s_lease(tmp_path: Path) -> None:
    """Two pods of a host name that begin in one second, each with the id 1, have the same word for people."""
    control, clock = ControlTable.ensure(Layout(tmp_path, "shop")), Clock()
    lease = control.take("pod:1:1772323200", process=f"pod {BOOT}:{SECOND} 1 17", now=NOW)
    clock.meanwhile = lambda: control.renew(lease, now=NOW)
    with pytest.raises(LeaseHeld):
        control.take(lease.holder, process=f"pod {BOOT}:{FIRST} 1 17", now=NOW, clock=clock, wait=clock.wait)
    # Its own is taken again at once, as after a driver that had to end.
    clock.waits.clear()
    assert (
        control.take(lease.holder, process=lease.process, now=NOW, clock=clock, wait=clock.wait).token
        > lease.token
    )
    assert not clock.waits


def test_a_holder_of_which_only_the_host_name_is_known_is_waited_for(tmp_path: Path) -> None:
    """An earlier release wrote no more than that."""
    control, clock = ControlTable.ensure(Layout(tmp_path, "shop")), Clock()
    control.take(f"{socket.gethostname()}:99999999:1", now=NOW)
    control.take("here:1:1", process=own_process_name(), now=NOW, clock=clock, wait=clock.wait)
    assert sum(clock.waits) == TTL.total_seconds()


def test_a_process_that_is_hidden_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hidepid, /proc shows each user the processes of his own, and the lease of another user lives."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/stat").touch()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        name = name_process(child.pid)
        assert life_of(name) is Life.ALIVE
        monkeypatch.setattr(processes, "PROC", tmp_path)
        assert life_of(name) is Life.UNKNOWN
        child.kill()
        child.wait()
        assert life_of(name) is Life.GONE

    def refuse(pid: int, signum: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    assert life_of(name) is Life.UNKNOWN


def test_a_foreign_proc_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PID namespace under the /proc of another shows that one's processes; each process is a place of its own."""
    me = own_process_name()
    (tmp_path / "self").symlink_to("1")
    monkeypatch.setattr(places, "PROC", tmp_path)
    places.distinguish_place.cache_clear()
    first = own_process_name()
    assert first == own_process_name() != me
    assert life_of(first) is life_of(me) is Life.UNKNOWN
    places.distinguish_place.cache_clear()
    assert own_process_name() != first


def test_without_linux_the_first_process_tells_the_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that is not shown, too, nobody is taken for gone."""
    monkeypatch.setattr(places, "PROC", tmp_path / "nowhere")
    monkeypatch.setattr(processes, "PROC", tmp_path / "nowhere")
    places.distinguish_place.cache_clear()
    before = own_process_name()
    assert life_of(before) is Life.ALIVE
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: 1772323200.0)
    places.distinguish_place.cache_clear()
    assert places.own_place().endswith(":1772323200.0")
    assert life_of(before) is Life.UNKNOWN

    def refuse(_: psutil.Process) -> float:
        raise psutil.AccessDenied(1)

    monkeypatch.setattr(psutil.Process, "create_time", refuse)
    places.distinguish_place.cache_clear()
    assert not places.can_see_processes()
    assert life_of(own_process_name()) is Life.UNKNOWN


def test_what_a_process_elsewhere_has_said_is_no_process_here() -> None:
    """A folder that two containers share has the ids of both: nobody is killed for an id, and none lives by it."""
    pid, here = os.getpid(), own_process_name()
    elsewhere = here.replace(places.own_place(), f"{socket.gethostname()} {BOOT}:{SECOND}")
    assert Identity(socket.gethostname(), pid, name=here).alive()
    assert not Identity(socket.gethostname(), pid, name=elsewhere).alive()
    assert not Identity(socket.gethostname(), pid, born=psutil.Process().create_time()).alive()
    for name, lives in ((here, True), (elsewhere, False), ("", False)):
        assert DriverReport(pid, 1, 1, "running", datetime.now(UTC), {}, process=name).alive is lives


def test_containers_within_ours_are_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their supervisors are seen from outside, and may have a folder of the same name."""
    move_to(monkeypatch, tmp_path, BOOT, FIRST)
    for pid, ids in ((70, FIRST), (71, SECOND)):
        (tmp_path / f"{pid}/ns").mkdir(parents=True)
        (tmp_path / f"{pid}/ns/pid").symlink_to(ids)
    assert places.is_of_this_place(70)
    assert not places.is_of_this_place(71)
