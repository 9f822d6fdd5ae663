"""The supervisor owns one driver, under one lease; the drivers here are scripts, the processes real."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from tests.unit.shop import DEFINITION

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.definition.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from seamline.model.errors import (
    ChangedByOthers,
    GaveUp,
    LeaseHeld,
    OutOfStep,
    StoreUnavailable,
    TopicMissing,
)
from seamline.runtime.processes import boot_clock_seconds
from seamline.supervisor.driver_process import LOG_BYTES, list_session_processes, rotate_in_use, rotate_log
from seamline.supervisor.driver_watch import make_policy_reader
from seamline.supervisor.outside import read_stream_status, start_detached, stop_stream
from seamline.supervisor.process import supervise
from seamline.supervisor.restart_pace import Pace, Restarts
from seamline.supervisor.supervisor_heartbeat import GAVE_UP, Heartbeat, Identity

DRIVER = """
import os, signal, subprocess, sys, time
home = os.environ["SEAMLINE_HOME"]
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], preexec_fn=lambda: os.setpgid(0, 0))
with open(os.path.join(home, "starts"), "a") as starts:
    starts.write(" ".join([*sys.argv[1:], str(os.getpid()), str(worker.pid)]) + chr(10))
code = os.path.join(home, "exit")
def bye(*_):
    open(os.path.join(home, "finished"), "w").write("epoch")
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
while True:
    if os.path.exists(code):
        sys.exit(int(open(code).read()))
    time.sleep(0.02)
"""


@pytest.fixture
def layout(tmp_path, monkeypatch):
    """A stream whose driver is a script, in a home of its own; nothing of it is left afterwards."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "stream.py").write_text(DRIVER)
    monkeypatch.setenv("SEAMLINE_JOBS", str(jobs))
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "include"))
    layout = Layout(tmp_path / "warehouse", "p")
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="test", reason="", now=datetime.now(UTC))
    yield layout
    stop_stream(layout, timeout=20)


def eventually(condition, seconds=30.0):
    """Wait for a condition and give what it gave."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)
    return found


def starts(tmp_path, number=1):
    """Wait for the driver's n-th start: its token, its process id, its worker's."""

    def read():
        file = tmp_path / "starts"
        lines = file.read_text().splitlines() if file.exists() else []
        return lines[number - 1] if len(lines) >= number else None

    words = eventually(read).split()
    return int(words[words.index("--token") + 1]), int(words[-2]), int(words[-1])


def gone(pid):
    """Return whether a process has ended (one that nobody waits for counts as ended)."""
    try:
        return not Identity.of(pid).alive()
    except psutil.NoSuchProcess:
        return True


def test_the_lease_is_there_before_the_driver(layout, tmp_path):
    """A second driver must be refused before it costs a JVM."""
    start_detached("p", {})
    token, driver, _ = starts(tmp_path)
    lease = ControlTable.ensure(layout).read().lease
    assert lease is not None
    assert lease.token == token
    assert os.getsid(driver) == driver


def test_a_second_supervisor_is_refused_and_starts_nothing(layout, tmp_path):
    """Reconcile may be asked twice; the stream runs once."""
    start_detached("p", {})
    starts(tmp_path)
    second = subprocess.run(
        [sys.executable, "-m", "seamline.supervisor", "p"], capture_output=True, check=False
    )
    assert second.returncode == LeaseHeld.exit_code
    assert len((tmp_path / "starts").read_text().splitlines()) == 1


def test_a_driver_that_dies_is_started_again_under_a_higher_token_and_leaves_no_worker(layout, tmp_path):
    """The old driver's commits must be refused, and its Python workers must not keep the memory."""
    start_detached("p", {})
    first, driver, worker = starts(tmp_path)
    os.kill(driver, signal.SIGKILL)
    second, other, _ = starts(tmp_path, 2)
    assert second > first
    assert other != driver
    assert gone(worker)


def test_stopping_lets_the_driver_finish_its_epoch(layout, tmp_path):
    """Stop means: finish, write, release; never kill at once."""
    pid = start_detached("p", {})
    _, driver, worker = starts(tmp_path)
    assert stop_stream(layout, timeout=30)
    assert (tmp_path / "finished").read_text() == "epoch"
    assert ControlTable.ensure(layout).read().lease is None
    assert all(gone(each) for each in (pid, driver, worker))
    assert read_stream_status("p").desired is Desired.STOPPED


def test_a_signal_stops_the_stream_too(layout, tmp_path):
    """systemd and compose send SIGTERM; what is desired does not change by it."""
    pid = start_detached("p", {})
    _, driver, _ = starts(tmp_path)
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: gone(driver) and ControlTable.ensure(layout).read().lease is None)
    assert read_stream_status("p").desired is Desired.RUNNING


def test_a_driver_that_is_fenced_off_ends_its_supervisor(layout, tmp_path):
    """Fence lost means that somebody newer runs: starting again would only fence that one."""
    (tmp_path / "exit").write_text("20")
    assert supervise("p", layout, pace=Pace(tick=0.02)) == 20
    assert ControlTable.ensure(layout).read().lease is None
    # It ended in this process, which lives: nobody waits for it, or ends us.
    assert stop_stream(layout, timeout=0)


def test_a_supervisor_that_loses_its_lease_ends_its_driver(layout, tmp_path):
    """Two drivers would fence each other for ever."""
    control = ControlTable.ensure(layout)
    start_detached("p", {})
    _, driver, _ = starts(tmp_path)
    ahead = itertools.count(0, 60)
    control.take("thief", now=datetime.now(UTC), clock=lambda: next(ahead), wait=lambda _: None)
    eventually(lambda: gone(driver))
    held = control.read().lease
    assert held is not None
    assert held.holder == "thief"
    control.release(held)


def test_a_full_disk_is_waited_for(layout, tmp_path, monkeypatch, capsys):
    """The lease cannot be prolonged then, by anybody: the driver lives on for a while, and it is said what is wrong."""
    full = threading.Event()
    append = Table.append

    def written(*args, **facts):
        if full.is_set():
            raise OSError("Generic error: No space left on device (os error 28)")
        return append(*args, **facts)

    monkeypatch.setattr(Table, "append", written)
    halt, codes = threading.Event(), []
    pace = Pace(tick=0.02, renew=0.1)
    running = threading.Thread(target=lambda: codes.append(supervise("p", layout, pace=pace, stop=halt)))
    running.start()
    _, driver, _ = starts(tmp_path)
    full.set()
    control = ControlTable(Table.open(layout.table("control")))
    before = control.read().lease.beat
    eventually(lambda: "disk is full" in capsys.readouterr().out)
    full.clear()
    eventually(lambda: control.read().lease.beat > before)
    assert not gone(driver)
    # The heartbeat is written a moment after the lease.
    eventually(lambda: "disk is full" in Heartbeat.read(tmp_path, "p").last_error)
    assert len((tmp_path / "starts").read_text().splitlines()) == 1
    halt.set()
    running.join(60)
    assert codes == [0]


def test_a_lease_that_was_taken_without_an_answer_is_not_lost_to_oneself(layout, tmp_path, monkeypatch):
    """The next look finds a newer token, which is ours: a supervisor that ended for it would be missed for a minute."""
    slept, halt, codes, unanswered = [0.0], threading.Event(), [], []
    take = ControlTable.take

    def taken(*args, **facts):
        found = take(*args, **facts)
        if slept[0] and not unanswered:
            unanswered.append(found.token)
            raise StoreUnavailable("nobody answered")
        return found

    monkeypatch.setattr(ControlTable, "take", taken)
    clock = lambda: boot_clock_seconds() + slept[0]  # noqa: E731
    pace = Pace(tick=0.02, renew=0.1)
    run = lambda: codes.append(supervise("p", layout, pace=pace, stop=halt, clock=clock))  # noqa: E731
    running = threading.Thread(target=run)
    running.start()
    starts(tmp_path)
    slept[0] = 3600.0
    second, _, _ = starts(tmp_path, 2)
    assert second > unanswered[0]
    halt.set()
    running.join(60)
    assert codes == [0]


def test_a_machine_that_slept_ends_its_driver_and_goes_on_under_another_token(layout, tmp_path):
    """Nobody renewed meanwhile: another may have the stream, so the driver goes; then nobody had, and it goes on."""
    slept, halt, codes = [0.0], threading.Event(), []
    clock = lambda: boot_clock_seconds() + slept[0]  # noqa: E731
    pace = Pace(tick=0.02, renew=0.1)
    run = lambda: codes.append(supervise("p", layout, pace=pace, stop=halt, clock=clock))  # noqa: E731
    running = threading.Thread(target=run)
    running.start()
    first, driver, worker = starts(tmp_path)
    slept[0] = 3600.0
    second, other, _ = starts(tmp_path, 2)
    assert second > first and other != driver
    assert gone(driver) and gone(worker)
    eventually(lambda: (beat := Heartbeat.read(tmp_path, "p")) and beat.token == second)
    assert Heartbeat.read(tmp_path, "p").strikes == 0
    # A clock on the wall is not asked: what jumps is only what people are shown.
    halt.set()
    running.join(60)
    assert codes == [0]


def test_the_driver_of_a_dead_supervisor_is_ended_by_the_next(layout, tmp_path):
    """A SIGKILLed supervisor leaves a driver behind that holds memory and Kafka connections."""
    pid = start_detached("p", {})
    first, driver, _ = starts(tmp_path)
    os.kill(pid, signal.SIGKILL)
    # Its lease stands: that its process is gone is seen on the same machine.
    assert ControlTable.ensure(layout).read().lease is not None
    start_detached("p", {})
    second, _, _ = starts(tmp_path, 2)
    assert second > first
    assert gone(driver)
    assert not [each for each in list_session_processes(driver) if not gone(each.pid)]


def test_the_heartbeat_says_what_is_wrong(layout, tmp_path):
    """`seamline status` answers without anybody reading logs."""
    (tmp_path / "exit").write_text("11")
    start_detached("p", {})

    def told():
        beat = Heartbeat.read(tmp_path, "p")
        return beat if beat and beat.strikes else None

    beat = eventually(told)
    assert beat.last_error.startswith("exit code 11")
    assert beat.state == "waiting 30 s after exit code 11"
    assert beat.driver is None


def test_after_too_many_failures_it_gives_up_aloud(layout, tmp_path):
    """A crash loop of weeks is nobody's wish; what is wrong stays to be read."""
    (tmp_path / "exit").write_text("1")
    ControlTable.ensure(layout).restart(actor="test", reason="", now=datetime.now(UTC))
    soon = FixedDelay("10 milliseconds", failures=3)
    assert supervise("p", layout, pace=PROMPT, policy=lambda: soon) == GaveUp.exit_code
    assert len((tmp_path / "starts").read_text().splitlines()) == 3
    beat = Heartbeat.read(tmp_path, "p")
    assert (beat.state, beat.strikes, beat.restarts) == (GAVE_UP, 3, 1)
    assert beat.last_error.startswith("exit code 1")
    assert ControlTable.ensure(layout).read().lease is None


def test_the_definition_says_when_it_gives_up(layout, tmp_path, monkeypatch):
    """However the supervisor was started: by Airflow, by a command, or by systemd."""
    (tmp_path / "exit").write_text("1")
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    text = DEFINITION.replace("import Batch,", "import Batch, NoRestart, Stream,").replace(
        'name="shop"', 'name="p"'
    )
    (tmp_path / "p.py").write_text(
        text.replace("batch=Batch", "stream=Stream(restart=NoRestart()), batch=Batch")
    )
    assert supervise("p", layout, pace=PROMPT) == GaveUp.exit_code
    assert len((tmp_path / "starts").read_text().splitlines()) == 1


def test_a_restart_is_a_new_driver_and_no_strike(layout, tmp_path):
    """People ask for it; the old driver finishes its epoch first."""
    start_detached("p", {})
    first, driver, worker = starts(tmp_path)
    ControlTable.ensure(layout).restart(actor="test", reason="", now=datetime.now(UTC))
    second, _, _ = starts(tmp_path, 2)
    assert second > first
    assert (tmp_path / "finished").read_text() == "epoch"
    assert all(gone(each) for each in (driver, worker))
    assert Heartbeat.read(tmp_path, "p").strikes == 0


def test_a_person_need_not_wait_for_the_pause(layout, tmp_path):
    """Who has mended what was wrong asks for a restart, and does not look at a clock."""
    (tmp_path / "exit").write_text("11")
    start_detached("p", {})
    eventually(lambda: (beat := Heartbeat.read(tmp_path, "p")) and beat.state.startswith("waiting 30 s"))
    (tmp_path / "exit").unlink()
    ControlTable.ensure(layout).restart(actor="test", reason="fixed", now=datetime.now(UTC))
    starts(tmp_path, 2)


class Stuck:
    """A watch over a driver that comes to a stop, after an epoch or before."""

    why = ""

    def __init__(self, *, held):
        self.held = held

    def is_stuck(self, now):
        self.why = "the driver is stuck"
        return True

    def close(self):
        pass


PROMPT, TWICE = Pace(tick=0.02), FixedDelay("10 milliseconds", failures=2)


def test_a_driver_that_does_not_get_on_is_started_anew(layout, tmp_path):
    """Its process lives, and holds no epoch."""
    stuck = Stuck(held=False)
    code = supervise("p", layout, pace=PROMPT, watching=lambda _: stuck, policy=lambda: TWICE)
    assert code == GaveUp.exit_code
    assert not (tmp_path / "finished").exists(), "it is not asked to finish"
    assert Heartbeat.read(tmp_path, "p").last_error.startswith("the driver is stuck")


def test_a_driver_that_has_got_on_is_forgiven_what_went_before(layout, tmp_path):
    """Each holds an epoch and comes to a stop: however often that is, the next is started soon."""
    begun, halt = [], threading.Event()

    def watch(token):
        begun.append(token)
        if len(begun) == 5:
            halt.set()
        return Stuck(held=True)

    assert supervise("p", layout, pace=PROMPT, watching=watch, policy=lambda: TWICE, stop=halt) == 0
    assert (len(begun), Heartbeat.read(tmp_path, "p").strikes) == (5, 1)


@pytest.mark.parametrize(
    "error", [TopicMissing, OutOfStep, ChangedByOthers], ids=lambda error: error.__name__
)
def test_what_a_person_has_to_see_to_is_not_tried_again_at_once(error):
    """Every start commits to all tables before it finds out: twenty in three minutes, and none that would help."""
    restarts = Restarts(ExponentialDelay)
    assert restarts.find_pause(error.exit_code, 1, 0.0) == 30
    assert restarts.find_pause(1, 1, 0.0) == 1


def test_failures_of_long_ago_are_told_from_those_of_now():
    """A policy counts them by time, whatever was committed in between."""
    restarts = Restarts(lambda: FailureRate(failures=3, within="1 minute", delay="5 seconds"))
    assert [restarts.find_pause(1, 1, at) for at in (0.0, 50.0, 100.0, 109.0)] == [5, 5, 5, None]


def test_a_restart_forgives_what_failed_before(layout, tmp_path):
    """Somebody has mended it: one failure more is not two within the time."""
    code, begun, halt = tmp_path / "exit", [], threading.Event()
    code.write_text("1")

    def watch(token):
        begun.append(token)
        if len(begun) == 2:
            ControlTable.ensure(layout).restart(actor="test", reason="fixed", now=datetime.now(UTC))
        if len(begun) == 3:
            code.write_text("1")

    def policy():
        code.unlink()
        if len(begun) == 3:
            halt.set()
        return FailureRate(failures=2, within="1 hour", delay="10 milliseconds")

    assert supervise("p", layout, pace=PROMPT, watching=watch, policy=policy, stop=halt) == 0
    assert len(begun) == 3


def test_the_policy_is_that_of_the_definition_as_it_is_now(layout, tmp_path, monkeypatch):
    """Somebody corrects it while the driver fails; a definition that cannot be read takes no policy away."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    read, file = make_policy_reader("shop"), tmp_path / "shop.py"
    assert read() == ExponentialDelay()
    text = DEFINITION.replace("import Batch,", "import Batch, NoRestart, Stream,")
    file.write_text(text.replace("batch=Batch", "stream=Stream(restart=NoRestart()), batch=Batch"))
    assert read() == NoRestart()
    file.write_text("broken")
    assert read() == NoRestart()


def test_a_large_log_is_moved_away(tmp_path):
    """A stream of weeks must not fill the disk with its log."""
    log = tmp_path / "driver.log"
    for content in (b"first", b"second"):
        log.write_bytes(content + b"." * LOG_BYTES)
        rotate_log(log)
    assert not log.exists()
    assert (tmp_path / "driver.log.1").read_bytes().startswith(b"second")
    assert (tmp_path / "driver.log.2").read_bytes().startswith(b"first")


def test_a_log_that_is_written_to_is_emptied_and_goes_on(tmp_path):
    """A driver of weeks is not started anew for its log's sake."""
    log = tmp_path / "driver.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"old" + b"." * LOG_BYTES)
        rotate_in_use(log)
        writer.write(b"new")
        rotate_in_use(log)
    assert log.read_bytes() == b"new"
    assert (tmp_path / "driver.log.1").read_bytes().startswith(b"old")
