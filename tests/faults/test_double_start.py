"""Two supervisors started together: one has the lease before there is a driver, and the other starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.rig.processes import end_all, require_none
from tests.faults.rig.trial import Trial, eventually

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import LeaseHeld
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = pytest.mark.faults
TRIALS = 100
DRIVER = """
import os, signal, sys, time

with open(os.path.join(os.environ["SEAMLINE_HOME"], "starts"), "a") as starts:
    starts.write(" ".join([*sys.argv[1:], str(os.getpid())]) + chr(10))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that is a script."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "stream.py").write_text(DRIVER)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_all(tmp_path)


@pytest.mark.seeds(TRIALS)
def test_of_supervisors_started_together_one_starts_a_driver(
    seed: int, home: Path, jobs: Path, trial: Trial
) -> None:
    """Between looking at the lease and taking it there is no moment for a second one."""
    layout = Layout(home / "warehouse", "p")
    control = ControlTable.ensure(layout)
    control.want(Desired.RUNNING, actor="test", reason="", now=datetime.now(UTC))
    env = {
        **os.environ,
        "SEAMLINE_HOME": str(home),
        "SEAMLINE_WAREHOUSE": str(layout.warehouse),
        "SEAMLINE_JOBS": str(jobs),
        "PYTHONPATH": str(Path(__file__).parents[2] / "include"),
    }
    command = [sys.executable, "-m", "seamline.supervisor", "p"]
    began, rivals = [], []
    for _ in range(2):
        time.sleep(trial.chance.choice([0, 0, trial.chance.uniform(0, 0.3)]))
        began.append(time.monotonic())
        rivals.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    first, second = rivals
    eventually(
        "one of the two to be refused", lambda: first.poll() is not None or second.poll() is not None, 60
    )
    refused, other = (first, second) if first.poll() is not None else (second, first)
    said = refused.communicate()[0].decode()
    took = time.monotonic() - began[rivals.index(refused)]
    trial.prove("both alive at once, and one refused", refused.returncode == LeaseHeld.exit_code)
    trial.measure("started to refused", took)
    starts = home / "starts"
    eventually("the driver of the other", lambda: starts.exists() and starts.read_text().endswith("\n"))
    assert other.poll() is None
    assert len(starts.read_text().splitlines()) == 1, f"two drivers were started\n{said}"
    lease = control.read().lease
    assert lease is not None and f"--token {lease.token} " in starts.read_text()
    beat = Heartbeat.read(home, "p")
    assert beat is not None and beat.token == lease.token
    control.want(Desired.STOPPED, actor="test", reason="", now=datetime.now(UTC))
    assert other.wait(60) == 0
    other.communicate()
    assert control.read().lease is None
    require_none(home)
