"""An executor is killed in each stage of epochs in parts: on a cluster that Spark keeps on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable
from tests.faults.rig.executors import STAGES, WIDE
from tests.faults.rig.trial import Trial

from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout

pytestmark = pytest.mark.faults


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """A Spark whose workers keep what is theirs below the test's folder."""
    home = tmp_path / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    return home


def test_executors_die_in_each_stage_of_epochs_in_parts(
    spark_home: Path, tmp_path: Path, trial: Trial
) -> None:
    """What they had left goes with them; a part that moves finds the index, or is made again where that is lost."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.rig.executors", str(tmp_path)],
        env={**os.environ, "SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "executors.log").write_text(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    for stage in STAGES:
        trial.prove(f"executor killed, {stage}", stage in said["struck"])
    # One that is killed while it starts was never there.
    trial.prove("executors lost", done.stderr.count("Command exited with code 137") > len(STAGES))
    # More often where Spark has given up making them.
    trial.prove("lost parts made again", done.stderr.count("are made again from the master") >= 2)
    print(
        *(line for line in done.stderr.splitlines() if "made again" in line or "Lost executor" in line),
        sep="\n",
    )
    print(f"{len(said['failures'])} epochs were tried again: {said['failures']}")
    judge(Layout(tmp_path / "warehouse", WIDE.name), Counter({int(id): n for id, n in said["sent"].items()}))


def judge(layout: Layout, sent: Counter[int]) -> None:
    """Compare master and slices with what was sent: every record is there, and every id counts once."""
    rows = DeltaTable(str(layout.table("master"))).to_pyarrow_table(columns=["id", "_selected"])
    assert Counter(rows["id"].to_pylist()) == sent
    assert Counter(rows.filter(rows["_selected"])["id"].to_pylist()) == dict.fromkeys(sent, 1)
    held = {epoch.number for epoch in Ledger.ensure(layout).read()}
    [view] = WIDE.views
    slices = DeltaTable(str(layout.slices(view))).to_pyarrow_table(columns=["id", "rows", "to_epoch"])
    counted: Counter[int] = Counter()
    for row in slices.to_pylist():
        counted[row["id"]] += row["rows"] if row["to_epoch"] in held else 0
    assert counted == dict.fromkeys(sent, 1)
