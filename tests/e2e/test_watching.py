"""A stream is looked at from outside while it lives and dies; its driver is a script, the processes are real."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from tests.e2e.test_supervisor import eventually
from tests.unit.shop import DEFINITION

from seamline.cli import main
from seamline.lake.status.marks import REFUSED, leave_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import LeaseHeld
from seamline.model.protocol.alert import AlertKind
from seamline.plan.stream.stream_state import Actual
from seamline.supervisor.board import Board
from seamline.supervisor.observe import observe
from seamline.supervisor.outside import start_detached, stop_stream
from seamline.supervisor.process import supervise
from seamline.supervisor.restart_pace import Pace
from seamline.supervisor.supervisor_heartbeat import Heartbeat

DRIVER = """
import json, os, sys, time
from datetime import UTC, datetime
from seamline.runtime.processes import own_process_name
home = os.environ["SEAMLINE_HOME"]
token = int(sys.argv[sys.argv.index("--token") + 1])
now = datetime.now(UTC).isoformat()
said = {"pid": os.getpid(), "token": token, "epoch": -1, "state": "running", "at": now, "lag": {"T/0": 3}, "up": now}
said["process"] = own_process_name()
print("driver of token", token, flush=True)
place = os.path.join(home, "streams", "shop", "driver.json")
with open(place + ".new", "w") as file:
    json.dump(said, file)
os.replace(place + ".new", place)
code = os.path.join(home, "exit")
while True:
    if os.path.exists(code):
        print("the disk is on fire", flush=True)
        sys.exit(int(open(code).read()))
    time.sleep(0.02)
"""


@pytest.fixture
def layout(tmp_path, monkeypatch):
    """A defined stream whose driver is a script; nothing of it is left afterwards."""
    for name, text in [
        ("jobs/stream.py", DRIVER),
        ("pipelines/shop.py", DEFINITION),
    ]:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    for name, place in [
        ("JOBS", "jobs"),
        ("HOME", ""),
        ("WAREHOUSE", "warehouse"),
        ("PIPELINES", "pipelines"),
    ]:
        monkeypatch.setenv(f"SEAMLINE_{name}", str(tmp_path / place))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "include"))
    layout = Layout(tmp_path / "warehouse", "shop")
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="test", reason="", now=datetime.now(UTC))
    yield layout
    stop_stream(layout, timeout=20)


def seen(layout):
    return observe("shop", layout, None)


def becomes(layout, actual):
    """Wait until the stream is seen so, and give what is seen."""

    def told():
        found = seen(layout)
        return found if found.actual is actual else None

    return eventually(told)


def test_every_state_of_a_life_is_seen(layout, tmp_path, capsys):
    """Gone, running, waiting, running again, without a supervisor, gone, stopped: none may be called another."""
    assert seen(layout).actual is Actual.GONE
    pid = start_detached("shop", {})
    found = becomes(layout, Actual.RUNNING)
    assert (found.restarts, found.strikes, found.lag.records) == (0, 0, 3)

    (tmp_path / "exit").write_text("1")
    found = becomes(layout, Actual.WAITING)
    assert found.strikes
    assert "the disk is on fire" in found.last_error
    assert main(["stream", "list"]) == 0
    assert "the disk is on fire" in capsys.readouterr().out
    (tmp_path / "exit").unlink()
    found = becomes(layout, Actual.RUNNING)
    assert (found.restarts or 0) >= 1
    assert main(["stream", "logs", "shop", "-n", "1"]) == 0
    assert capsys.readouterr().out.startswith("driver of token")

    beat = Heartbeat.read(tmp_path, "shop")
    assert beat is not None and beat.driver is not None
    os.kill(pid, signal.SIGKILL)
    found = eventually(lambda: each if (each := seen(layout)).detail else None)
    assert (found.actual, found.detail) == (Actual.RUNNING, "its driver has no supervisor")
    psutil.Process(beat.driver.pid).kill()
    assert "died" in becomes(layout, Actual.GONE).detail
    control = ControlTable.ensure(layout)
    left = control.read().lease
    assert left is not None
    control.release(left)
    assert stop_stream(layout, timeout=20)
    assert seen(layout).actual is Actual.STOPPED


def test_a_supervisor_that_is_refused_leaves_a_mark(layout):
    """Two that fight for a stream are a mistake of somebody's, who must hear of it."""
    start_detached("shop", {})
    becomes(layout, Actual.RUNNING)
    second = subprocess.run(
        [sys.executable, "-m", "seamline.supervisor", "shop"], capture_output=True, check=False
    )
    assert second.returncode == LeaseHeld.exit_code
    assert seen(layout).refused is not None
    assert "holds the lease" in seen(layout).refusal


def test_a_webhook_that_hangs_delays_no_lease(layout, tmp_path, monkeypatch):
    """A lease that runs out because a chat service is slow would start a second driver."""
    leave_mark(layout, REFUSED, now=datetime.now(UTC), why="another has it")
    control, halt, codes = ControlTable.ensure(layout), threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("SEAMLINE_ALERT_WEBHOOK", f"http://127.0.0.1:{server.getsockname()[1]}/")
        pace = Pace(tick=0.02, renew=0.05, look=0.05, grace=5)
        thread = threading.Thread(
            target=lambda: codes.append(supervise("shop", layout, pace=pace, stop=halt)), daemon=True
        )
        thread.start()
        # It has connected, and is never answered.
        connection, _ = server.accept()
        with connection:
            before = control.read().lease
            assert before is not None
            eventually(lambda: (lease := control.read().lease) and lease.beat > before.beat)
            halt.set()
            eventually(lambda: control.read().lease is None)
    thread.join(30)
    assert codes == [0]
    board = Board.read(tmp_path / "streams" / "shop")
    assert [each.kind for each in board.raised] == [AlertKind.LEASE]
    assert [each.channel for each in board.telling] == ["webhook"]
