"""The processes of a driver die one by one, at every commit point and at any time; they freeze, and meet others."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest
from tests.faults.rig.commit_points import Left
from tests.faults.rig.line import PATIENCE, Line
from tests.faults.rig.processes import ORPHANS_END_WITHIN, signalled, working_in
from tests.faults.rig.trial import Trial, eventually

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.model.errors import FenceLost
from seamline.runtime.failpoints import DAEMON, EPOCH, is_process_running
from seamline.supervisor.supervisor_heartbeat import Identity

VICTIMS = ("jvm", "python")


@pytest.mark.parametrize("victim", VICTIMS)
def test_one_of_the_two_dies_at_every_commit_point(victim: str, line: Line, trial: Trial) -> None:
    """The one that is left may still commit; it ends by itself, and nothing is read twice."""
    line.send(9000)
    with line.reader:
        for point in EPOCH:
            before = line.stack.epoch()
            line.stack.start(SEAMLINE_FAIL=f"{point}:2:{victim}")
            assert line.stack.driver
            began = died(line, victim)
            line.stack.driver.wait(ORPHANS_END_WITHIN)
            line.require_clean()
            trial.measure(f"{victim} killed at {point}, orphans gone after", time.monotonic() - began)
            left = Left.of(line.stack)
            trial.prove(f"{victim} killed at {point}, {left}", line.stack.epoch() > before)
        line.stack.start()
        line.stack.drain(len(line.log), PATIENCE)
        assert line.stack.stop() == 0
    line.judge()


def died(line: Line, victim: str) -> float:
    """Wait until the victim is gone, and tell when that was."""
    assert line.stack.driver
    driver = line.stack.driver
    if victim == "python":
        assert driver.wait(PATIENCE) == -signal.SIGKILL
        return time.monotonic()
    parent = psutil.Process(driver.pid)
    had: list[psutil.Process] = []

    def jvm_gone() -> bool:
        if driver.poll() is not None:
            return True
        had[:] = had or [each for each in parent.children() if each.name() == "java"]
        return bool(had) and had[0].status() == psutil.STATUS_ZOMBIE

    eventually("the JVM to die", jvm_gone, PATIENCE)
    return time.monotonic()


def test_a_worker_dies_at_every_commit_point(line: Line, trial: Trial) -> None:
    """Spark tries the task again; the driver lives, under the same token."""
    line.send(6000)
    asked = ",".join(f"{point}:{2 + 2 * at}:worker" for at, point in enumerate(EPOCH) if point != "half")
    with line.reader:
        token = line.stack.start(SEAMLINE_FAIL=f"{asked},half:6:worker")
        seen: set[int] = set()

        def all_read() -> bool:
            assert line.stack.driver
            assert line.stack.driver.poll() is None
            for process in psutil.Process(line.stack.driver.pid).children(recursive=True):
                try:
                    if DAEMON in " ".join(psutil.Process(process.ppid()).cmdline()):
                        seen.add(process.pid)
                except psutil.Error:
                    continue
            return line.stack.offsets_read() >= len(line.log)

        line.stack.wait("everything to be read", all_read, 2 * PATIENCE)
        dead = [pid for pid in seen if not psutil.pid_exists(pid)]
        trial.prove(f"{len(dead)} workers killed", len(dead) >= len(EPOCH) - 2)
        assert line.stack.stop() == 0
    line.require_clean()
    epochs = line.judge()
    assert {epoch.token for epoch in epochs} == {token}


@pytest.mark.seeds(20)
def test_a_supervised_stream_comes_back_from_a_kill_at_any_time(seed: int, owned: Line, trial: Trial) -> None:
    """Every kill finds the stream somewhere else; the next epoch is there soon, and is the right one."""
    with owned.flowing(60):
        owned.await_beyond(owned.stack.epoch())
        time.sleep(trial.chance.uniform(0, 6))
        victim = trial.chance.choice(["jvm", "python", "both"])
        family, token = owned.family(), Ledger.ensure(owned.stack.layout).read()[-1].token
        assert family.jvm is not None
        struck = {"jvm": [family.jvm], "python": [family.driver], "both": [family.jvm, family.driver]}[victim]
        gone = [psutil.Process(pid) for pid in struck]
        for pid in struck:
            owned.kill(pid)
        epoch = owned.stack.epoch()
        took = owned.await_beyond(epoch + 1)
        trial.measure("SIGKILL to next committed epoch", took)
    after = Ledger.ensure(owned.stack.layout).read()[-1].token
    trial.prove(f"{victim} killed at epoch {epoch}", after > token and not any(map(is_process_running, gone)))
    owned.drained()
    if seed % 5 == 4:
        owned.judge()


@pytest.fixture(scope="module")
def owned(kafka, tmp_path_factory):
    """One supervised stream for all kills at random times: each begins with what the one before left."""
    made = Line(
        tmp_path_factory.mktemp("owned"), kafka, 7, name="owned", trigger="500 milliseconds", limit=2000
    )
    made.supervise()
    made.send(500)
    made.await_beyond(-1)
    with made.reader:
        yield made
        made.stop()
    made.require_clean()
    made.judge()
    made.close()


@pytest.mark.parametrize("point", ["planned", "files", "slices", "quarantine"])
def test_a_frozen_driver_that_thaws_after_its_lease_has_passed_on_commits_nothing(
    point: str, line: Line, trial: Trial
) -> None:
    """It is stopped just before a commit; when it goes on, somebody else has written."""
    line.send(1500)
    line.stack.start(SEAMLINE_FAIL=f"{point}:2:freeze")
    frozen = line.stack.driver
    assert frozen
    process = psutil.Process(frozen.pid)
    eventually("the driver to freeze", lambda: process.status() == psutil.STATUS_STOPPED, PATIENCE)
    family = [process, *process.children(recursive=True)]
    old = line.stack.epoch()
    trial.prove(f"frozen at {point} of epoch {old + 1}", True)
    token = line.stack.start()
    line.await_beyond(old + 2)
    began = time.monotonic()
    assert signalled(family, signal.SIGCONT)
    assert frozen.wait(ORPHANS_END_WITHIN) == FenceLost.exit_code
    took = time.monotonic() - began
    trial.measure("SIGCONT to exit", took)
    assert took < 5
    psutil.wait_procs(family, ORPHANS_END_WITHIN)
    assert not any(each.is_running() for each in family)
    line.stack.drain(len(line.log), PATIENCE)
    assert line.stack.stop() == 0
    line.require_clean()
    later = [epoch for epoch in line.judge() if epoch.number > old]
    assert {epoch.token for epoch in later} == {token}


@pytest.mark.seeds(5)
def test_two_whole_drivers_started_together(seed: int, line: Line, trial: Trial) -> None:
    """Whoever has the lower token commits nothing once the other has begun, and says so by its exit code."""
    line.send(3000)
    line.stack.start()
    first = line.stack.driver
    assert first
    time.sleep(trial.chance.uniform(0, 12))
    token = line.stack.start()
    trial.prove("two drivers at once", first.poll() is None)
    assert first.wait(PATIENCE) == FenceLost.exit_code
    line.stack.drain(len(line.log), PATIENCE)
    assert line.stack.stop() == 0
    line.require_clean()
    epochs = line.judge()
    assert epochs[-1].token == token


def test_a_frozen_supervisor_and_driver_lose_the_stream_to_the_next(line: Line, trial: Trial) -> None:
    """A suspended machine wakes up: both find that their lease is somebody else's, and end."""
    line.send(600)
    first = line.supervise()
    line.await_beyond(0)
    asleep = working_in(line.home)
    signalled(asleep, signal.SIGSTOP)
    eventually("all of them to stand still", lambda: all(map(still, asleep)))
    trial.prove("supervisor and driver stopped", all(map(still, asleep)))
    control = line.stack.layout
    before = Master.open(control).epoch
    eventually("the lease to run out", lambda: not leased(line), 60)
    line.supervise()
    line.send(600)
    line.await_beyond(before)
    began = time.monotonic()
    signalled(asleep, signal.SIGCONT)
    code = first.wait(ORPHANS_END_WITHIN)
    psutil.wait_procs(asleep, ORPHANS_END_WITHIN)
    trial.measure("SIGCONT to both gone", time.monotonic() - began)
    assert code in (20, 21)
    assert not any(each.is_running() for each in asleep)
    line.drained()
    line.stop()
    line.require_clean()
    line.judge()


def still(process: psutil.Process) -> bool:
    """Return whether a process is stopped, or has ended."""
    return not process.is_running() or process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)


def leased(line: Line) -> bool:
    """Return whether somebody holds the lease now."""
    from seamline.lake.tables.control_table import ControlTable

    return ControlTable.ensure(line.stack.layout).live_lease() is not None


def test_a_supervisor_that_is_killed_leaves_a_driver_that_ends(line: Line, trial: Trial) -> None:
    """Nobody looks after it any more: it finishes its epoch and goes, so that the next one finds no rival."""
    line.send(600)
    supervisor = line.supervise()
    line.await_beyond(0)
    family = line.family()
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    trial.prove("supervisor killed", Identity.of(family.driver).alive())
    took = line.require_clean()
    trial.measure("orphaned driver gone after", took)
    assert took < ORPHANS_END_WITHIN
    line.send(600)
    eventually("the lease to run out", lambda: not leased(line), 60)
    line.supervise()
    line.drained()
    line.stop()
    line.judge()
