"""What a demo's Airflow has started is stopped, whatever pipeline it is of."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.unit.shop import Shop

from seamline.supervisor.outside import list_shared_layouts, stop_all

pytestmark = pytest.mark.slow

SUPERVISOR = """
import sys
from seamline.lake.storage.layout import locate_tables
from seamline.supervisor.process import supervise
supervise(sys.argv[1], locate_tables(sys.argv[1]), command=lambda token: ["sleep", "600"])
"""
BEGINNING = "import sys, time; print('up', flush=True); time.sleep(600)"


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a Python of its own session; killed in the end, should it still be there."""
    child = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout
        child.stdout.close()


def test_every_stream_is_stopped_and_no_other_home_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline that was added while the demo ran kept its supervisor, driver and JVM, at a dead broker."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    Shop(tmp_path / "warehouse")
    with (
        started(SUPERVISOR, "added") as added,
        started(SUPERVISOR, "_driver") as resident,
        started(BEGINNING, "seamline.supervisor", "later") as later,
    ):
        monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "elsewhere"))
        with started(BEGINNING, "seamline.supervisor", "other") as other:
            monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
            for child, word in ((added, "running"), (resident, "running"), (later, "up"), (other, "up")):
                assert child.stdout
                assert any(word in line for line in child.stdout), child.args
            drivers = [each for child in (added, resident) for each in psutil.Process(child.pid).children()]
            assert [layout.pipeline for layout in list_shared_layouts()] == ["_driver", "added"]
            stop_all()
            assert [child.wait(30) for child in (added, resident)] == [0, 0]
            assert later.wait(30) == -9
            assert other.poll() is None
            assert [driver for driver in drivers if driver.is_running()] == []
