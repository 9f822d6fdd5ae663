"""A build's task within a worker's memory: what DuckDB has no room for goes to disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.runtime import spill_folder

SPILL = """
import resource
from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.spark.build.share_rows import limit_duckdb_memory
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
con = open_worker_duckdb()
for _ in range(2):
    limit_duckdb_memory(con, "1g")
con.execute("CREATE TEMP TABLE rows AS SELECT range AS n, hash(range) AS a, hash(range + 1) AS b FROM range(50000000)")
print(con.execute("SELECT count(*), max(n) FROM rows").fetchall())
"""


def test_rows_that_memory_does_not_hold_are_on_disk() -> None:
    """Rows whose ids are looked for twice: 1.2 GB of them in a worker of 1 GB."""
    done = subprocess.run([sys.executable, "-c", SPILL], capture_output=True, text=True, check=False)
    assert done.stdout == "[(50000000, 49999999)]\n", (done.returncode, done.stderr[-2000:])


def test_what_killed_processes_left_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten gigabytes of a killed worker stayed for ever; those of one that lives, or of anybody else, are left alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    start = spill_folder.spill_folder_prefix()
    stay = [
        f"{start}{os.getppid()}",
        f"{start}x",
        f"seamline-spilled-1-{gone.pid}",
        f"other-{gone.pid}",
        "target",
    ]
    for name in (*stay, f"{start}{gone.pid}", f"{start}{os.getpid()}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "duckdb_temp_storage-0.tmp").write_text("x")
    away = max(int(pid.name) for pid in Path("/proc").iterdir() if pid.name.isdecimal()) + 100_000
    (tmp_path / f"{start}{away}").symlink_to(tmp_path / "target")
    spill_folder.delete_stale_spills.cache_clear()
    open_duckdb().close()
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == sorted([*stay, f"{start}{away}"])
    assert (tmp_path / "target" / "duckdb_temp_storage-0.tmp").exists()
    # What this process has spilled since is in use.
    spill_folder.own_spill_folder().mkdir()
    open_duckdb().close()
    assert spill_folder.own_spill_folder().exists()
