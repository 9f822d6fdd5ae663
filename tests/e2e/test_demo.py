"""The demo of a few days, from nothing to the checked answer: Kafka, Airflow, Spark and Delta at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.faults.rig.store_settings import set_store
from tests.ports import free_ports
from tests.services.addresses import Bucket

from seamline.model.errors import SetupError

ROOT = Path(__file__).parents[2]
IN_THE_MIDDLE = "replaying the flights"


def left(home: Path) -> list[psutil.Process]:
    """List the processes that belong to a demo's folder and do not end by themselves."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SEAMLINE_HOME") == str(home) or str(home) in " ".join(
                process.cmdline()
            ):
                found.append(process)
    # Python's resource tracker ends when it sees that its parent has.
    return psutil.wait_procs(found, timeout=20)[1]


@contextmanager
def started_demo(home: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Run the demo of a few days; its standard output and error are one stream of text."""
    first = free_ports(5)
    command = [
        *(sys.executable, "-m", "seamline.local.demo", "--exit"),
        # Backfills by Airflow's command are test_airflow_runs' work.
        *("--until", "2013-01-06", "--seconds", "8", "--backfill-days", "0"),
        *("--home", str(home), "--kafka-port", str(first), "--airflow-port", str(first + 2)),
        *more,
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT / "include")},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as running:
        yield running


def run_demo(home: Path, *more: str) -> tuple[int, str]:
    """Run the demo of a few days; return its exit code and what it said."""
    with started_demo(home, *more) as running:
        said, _ = running.communicate()
    return running.returncode, said


@pytest.mark.faults
def test_a_demo_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    """With its broker, Airflow, stream and replay up; what it does then is done by tests/cluster/test_core.py, too."""
    home, said = tmp_path / "demo", list[str]()
    with started_demo(home) as running:
        assert running.stdout
        for line in running.stdout:
            said.append(line)
            if IN_THE_MIDDLE in line:
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130, "".join(said)[-6000:]
    assert said[-1] == "stopped\n"
    assert left(home) == []


@pytest.mark.faults
def test_the_demo_ends_right_and_leaves_nothing_running(tmp_path: Path) -> None:
    """What a newcomer sees first is what must never break."""
    home = tmp_path / "demo"
    environment = ROOT / ".seamline" / "env"
    before = environment.read_bytes() if environment.exists() else None
    code, said = run_demo(home)
    assert code == 0, said[-6000:]
    assert "everything is right" in said
    assert "Certificate of 2013-01-04" in (home / "report.txt").read_text()
    assert left(home) == []
    assert (environment.read_bytes() if environment.exists() else None) == before


@pytest.mark.faults
def test_the_demo_is_as_right_in_a_bucket(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check reads the bucket too; nothing of the tables is on the disk, and none is put beside what is there."""
    place = set_store(monkeypatch, bucket, bucket.endpoint, tmp_path)["SEAMLINE_WAREHOUSE"]
    monkeypatch.delenv("SEAMLINE_WAREHOUSE")
    home = tmp_path / "demo"
    code, said = run_demo(home, "--warehouse", place)
    assert code == 0, said[-6000:]
    assert "everything is right" in said
    assert left(home) == []
    assert not (home / "warehouse").exists()
    code, said = run_demo(home, "--warehouse", place)
    assert code == SetupError.exit_code
    assert f"{place} has flights in it already." in said
