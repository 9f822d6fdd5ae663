"""The demo of a few days, from nothing to the checked answer: Kafka, Airflow, Spark and Delta at once."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]


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


def test_the_demo_ends_right_and_leaves_nothing_running(tmp_path: Path) -> None:
    """What a newcomer sees first is what must never break."""
    home, first = tmp_path / "demo", free_ports(5)
    environment = ROOT / ".seamline" / "env"
    before = environment.read_bytes() if environment.exists() else None
    command = [
        *(sys.executable, "-m", "seamline.local.demo", "--exit"),
        # Backfills by Airflow's command are test_airflow_runs' work.
        *("--until", "2013-01-06", "--seconds", "8", "--backfill-days", "0"),
        *("--home", str(home), "--kafka-port", str(first), "--airflow-port", str(first + 2)),
    ]
    with (tmp_path / "output").open("wb") as output:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT / "include")},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = (tmp_path / "output").read_text(errors="replace")
    assert done.returncode == 0, said[-6000:]
    assert "everything is right" in said
    assert left(home) == []
    assert (environment.read_bytes() if environment.exists() else None) == before
