"""All services of docker-compose.yaml, on hosts that share nothing: they do the demo's work, and rightly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.composition import ROOT
from tests.cluster.hosts import why_no_hosts
from tests.e2e.test_demo import left


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_the_composition_does_the_demos_work(tmp_path: Path) -> None:
    """Kafka, PostgreSQL, a bucket, Spark's master and workers, two schedulers; `make cluster` kills them, too."""
    if why := why_no_hosts():
        pytest.skip(why)
    home = tmp_path / "cluster"
    command = [sys.executable, "-m", "tests.cluster", "--home", str(home), "--s3", "moto", "--faults", ""]
    done = subprocess.run(
        [*command, "--backfill-days", "0"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert "everything is right" in done.stdout
    assert left(home) == []
