"""Airflow dies piece by piece, and its database is locked: a stream under its reconcile does not notice."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults.rig.line import Line
from tests.faults.rig.network import wait_out
from tests.faults.rig.trial import Trial, eventually
from tests.ports import free_ports

from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.local.airflow import AirflowStandalone
from seamline.plan.wording.observation_text import RECONCILER
from seamline.runtime.failpoints import Family, is_process_running
from seamline.supervisor.driver_process import list_session_processes

ROOT = Path(__file__).parents[2]
SLOW_START = 600.0
PIECES = {
    "scheduler": "airflow scheduler",
    "triggerer": "airflow triggerer",
    "API server": "airflow api",
    "task supervisor": "airflow worker",
}
"""Words of the processes' titles."""


class Watched:
    """A stream that a standalone Airflow has started, and who it is, to be told from any other."""

    def __init__(self, line: Line, airflow: AirflowStandalone) -> None:
        self.line, self.airflow = line, airflow

    @property
    def dag(self) -> str:
        """The DAG whose first run starts the stream."""
        return f"{self.line.stack.name}__stream"

    def who(self) -> tuple[int, int]:
        """The process and the token of the driver."""
        beat = self.line.heartbeat()
        assert beat is not None
        assert beat.driver is not None
        return beat.driver.pid, beat.token

    def pieces(self, words: str) -> list[psutil.Process]:
        """List Airflow's processes of a kind."""
        assert self.airflow._child
        found = [each for each in list_session_processes(self.airflow._child.pid) if is_process_running(each)]
        return [each for each in found if words in title(each)]


def title(process: psutil.Process) -> str:
    """Return a process's command line as Airflow has set it."""
    try:
        return " ".join(process.cmdline()).replace("-", " ").lower()
    except psutil.Error:
        return ""


@pytest.fixture(scope="module")
def watched(kafka: KafkaConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Let Airflow's reconcile start a stream."""
    home = tmp_path_factory.mktemp("under-airflow")
    line = Line(home, kafka, 11, name="owned", trigger="500 milliseconds", limit=2000)
    mine = ("SEAMLINE_HOME", "SEAMLINE_WAREHOUSE", "SEAMLINE_PIPELINES", "AIRFLOW_CONN_KAFKA_DEFAULT")
    env = {name: line.stack.settings[name] for name in mine} | {"SEAMLINE_RECONCILE_SECONDS": "15"}
    airflow = AirflowStandalone(home / "airflow", free_ports(3), root=ROOT, env=env)
    made = Watched(line, airflow)
    try:
        airflow.start(SLOW_START)
        line.send(300)
        airflow.api.unpause(made.dag)
        line.await_beyond(0)
        with line.reader:
            yield made
            done = line.seamline("stream", "stop", line.stack.name, "--reason", "the end")
            assert done.returncode == 0, done.stderr
            eventually("the stream to stop", lambda: (line.heartbeat() or made).state == "stopped", 120)  # type: ignore[union-attr]
        airflow.stop()
        line.require_clean()
        line.judge()
    finally:
        airflow.stop()
        line.close()


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_airflow_that_is_killed(piece: str, watched: Watched, trial: Trial) -> None:
    """Nothing of the stream lives in it: the same driver goes on, and commits meanwhile."""
    who = watched.who()
    with watched.line.flowing(60):
        struck = eventually(f"a {piece} to kill", lambda: watched.pieces(PIECES[piece]), 120, every=0.02)
        for process in struck:
            process.kill()
        trial.prove(f"{len(struck)} {piece} killed", not any(map(running, struck)))
        began, epoch = time.monotonic(), watched.line.stack.epoch()
        watched.line.await_beyond(epoch + 3, 60)
        trial.measure("three epochs after", time.monotonic() - began)
    assert watched.who() == who


def running(process: psutil.Process) -> bool:
    """Return whether a process that was killed is still there a moment later."""
    psutil.wait_procs([process], 5)
    return is_process_running(process)


def test_a_metadata_database_that_is_locked(watched: Watched, trial: Trial) -> None:
    """Airflow can neither read nor write what it knows; the stream needs none of it."""
    who = watched.who()
    database = sqlite3.connect(watched.airflow.home / "airflow.db", timeout=60, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    try:
        with watched.line.flowing(60):
            epoch = watched.line.stack.epoch()
            other = sqlite3.connect(watched.airflow.home / "airflow.db", timeout=1)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("UPDATE dag SET is_paused = is_paused")
            other.close()
            trial.prove("database locked for 45 s", True)
            wait_out(45)
            watched.line.await_beyond(epoch + 3, 60)
    finally:
        database.execute("ROLLBACK")
        database.close()
    assert watched.who() == who


def test_airflow_comes_back_and_leaves_the_stream_alone_or_starts_it(watched: Watched, trial: Trial) -> None:
    """It finds a stream that is up and starts none; when all of it is killed, reconcile alone brings it back."""
    who = watched.who()
    watched.airflow.stop()
    watched.airflow.start(SLOW_START)
    with watched.line.flowing(60):
        runs = reconciled(watched)
        eventually("two more reconciles", lambda: reconciled(watched) >= runs + 2, 180, every=1.0)
        assert watched.who() == who
        beat = watched.line.heartbeat()
        assert beat is not None
        family = Family.of_driver(who[0])
        epoch = watched.line.stack.epoch()
        assert family.jvm is not None
        struck = [psutil.Process(pid) for pid in (beat.supervisor.pid, family.jvm, family.driver)]
        began = time.monotonic()
        for process in struck:
            process.kill()
        trial.prove("supervisor, JVM and driver killed", not any(map(running, struck)))
        eventually("a fresh answer", lambda: watched.line.reader.samples[-1].epoch > epoch + 1, 300)
        trial.measure("SIGKILL of all to a fresh answer through reconcile alone", time.monotonic() - began)
    assert watched.who()[1] > who[1]
    [event] = eventually("the event of a start", lambda: started(watched), 60)
    assert event["extra"]["token"] == watched.who()[1]
    assert Ledger.ensure(watched.line.stack.layout).read()[-1].token == watched.who()[1]
    watched.line.drained()


def started(watched: Watched) -> list[dict[str, Any]]:
    """List the events of starts by the reconcile DAG."""
    found = watched.airflow.api.call("GET", f"/assets/events?source_dag_id={RECONCILER}&limit=100")
    return [each for each in found["asset_events"] if each["extra"].get("event") == "stream started"]


def reconciled(watched: Watched) -> int:
    """Count the reconcile runs that have ended."""
    found = watched.airflow.api.call("GET", f"/dags/{RECONCILER}/dagRuns?limit=1000")["dag_runs"]
    return sum(each["state"] in ("success", "failed") for each in found)
