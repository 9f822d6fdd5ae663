"""A build whose JVM is killed, or whose workers die of their work: it says so and shows nothing; the next one works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from tests.e2e.world import DAYS, World
from tests.faults.rig.processes import require_none

from seamline.lake.publish.planning import job_of, plan_run
from seamline.model.errors import SparkFailed
from seamline.model.time.intervals import Interval, parse_moment
from seamline.runtime.java import class_path, java_home
from seamline.supervisor.job_files import find_job_file

END = "2013-01-03T00:00:00Z"
SPAN = ("--from", DAYS[0], "--to", END)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a warehouse with two days of flights, which are served, and one more flight."""
    made = World(tmp_path_factory.mktemp("world"))
    done = made.seamline("run", "flights", *SPAN)
    assert done.returncode == 0, done.stderr
    made.late(DAYS[1])
    return made


def require_unseen(world: World, run: Run, **settings: str) -> str:
    """Let a build fail, and require that it says so and that nothing is seen of it; give what it says."""
    before, served = world.published(), world.answer()
    died = run(**settings)
    # Spark's own log of the task is beside it; what is submitted says all that it says to spark-submit's stdout.
    told = [text for text in (f"\n{died.stderr}", f"\n{died.stdout}") if "\nError: " in text]
    said = told[0].rpartition("\nError: ")[2] if told else ""
    assert died.returncode == SparkFailed.exit_code, (died.returncode, died.stdout, died.stderr)
    assert "Traceback" not in said, said
    assert (world.published(), world.answer()) == (before, served)
    require_none(world.home)
    return said


@pytest.mark.parametrize("victim", ["jvm", "worker"])
def test_a_build_that_loses_its_spark_says_so(world: World, victim: str) -> None:
    """Kill -9 in the middle of its job; a worker dies of each trial of its task."""

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        return world.seamline("run", "flights", *SPAN, **settings)

    said = require_unseen(world, run, SEAMLINE_FAIL=f"partials:1:{victim}")
    assert {"jvm": "Spark's JVM ended in the middle of run", "worker": "A Spark task failed"}[victim] in said
    assert "nothing was published" in said


def test_a_worker_of_a_build_may_not_take_more_than_its_memory(world: World) -> None:
    """As of the stream's: it fails, and nobody asks the machine for what it has not."""
    text = world.definition.read_text()
    world.definition.write_text(text.replace("stream=Stream(", 'stream=Stream(worker_memory="64m", '))
    try:
        said = require_unseen(world, lambda **more: world.seamline("run", "flights", *SPAN, **more))
    finally:
        world.definition.write_text(text)
    assert "worker_memory" in said


def submitted(world: World, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build by spark-submit, as Airflow does."""
    plan = plan_run(
        world.pipeline, world.layout, asked=Interval(parse_moment(DAYS[0]), parse_moment(END)), dirty=False
    )
    job = job_of(world.pipeline, plan, run="submitted", reason="a trial", actor="test")
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    conf = ["--master", "local[2]", "--conf", f"spark.driver.extraClassPath={class_path()}"]
    env = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [submit, *conf, str(find_job_file("build")), *job.to_argv()],
        env={**os.environ, **world.settings, **env, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_submitted_build_whose_jvm_is_killed_shows_nothing(world: World) -> None:
    """There the JVM is what was started: its signal is the exit code, and its Python is gone soon."""
    before, served = world.published(), world.answer()
    died = submitted(world, SEAMLINE_FAIL="partials:1:jvm")
    assert died.returncode in (-9, 137), died.stderr
    require_none(world.home)
    assert (world.published(), world.answer()) == (before, served)
    said = require_unseen(world, lambda **more: submitted(world, **more), SEAMLINE_FAIL="partials:1:worker")
    assert "A Spark task failed" in said


def test_the_build_after_all_of_them_leaves_nothing_to_do(world: World) -> None:
    """What they left is in nobody's way, and no row is counted twice; what is committed needs no JVM to be shown."""
    done = world.seamline("run", "flights", *SPAN)
    assert done.returncode == 0, done.stderr
    world.late(DAYS[1])
    done = world.seamline("run", "flights", *SPAN, SEAMLINE_FAIL="built:1:jvm")
    assert done.returncode == 0, done.stderr
    assert sum(row["flights"] for row in world.answer()) == world.sent
    assert "nothing to do" in world.seamline("plan", "flights").stdout
