"""The batch DAG on a real Airflow database and a real Spark: plan, build, certify, publish, and who can read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.e2e.world import DAYS, ROOT, Resident, World, plain
from tests.faults.rig.trial import eventually
from tests.unit.lineage.receiver import receive

from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.claims_table import claims_of
from seamline.local.flights import Span, read_flights
from seamline.model.time.intervals import parse_moment
from seamline.supervisor import prespawned

pytestmark = pytest.mark.faults
RESULT = "RESULT "
TEST = f"""
import json, os, sys
from datetime import timedelta
from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.utils.session import create_session
from sqlalchemy import select
from seamline.orchestration import failures
failures.DELAY = timedelta(seconds=1)
for line in sys.stdin:
    asked = json.loads(line)
    os.environ.update(asked["settings"])
    dag = DagBag(sys.argv[1]).dags["flights__batch"]
    done = dag.test(run_conf=asked["conf"])
    tasks = {{each.task_id: str(each.state) for each in done.get_task_instances()}}
    build = next(each for each in done.get_task_instances() if each.task_id == "build")
    plan = (RenderedTaskInstanceFields.get_templated_fields(build) or {{}}).get("plan") or ""
    with create_session() as session:
        mine = select(AssetEvent).where(AssetEvent.source_run_id == done.run_id)
        told = [(each.partition_key, each.extra) for each in session.scalars(mine) if each.partition_key]
    partitions = {{key: extra["partitions"][key] for key, extra in told}}
    found = {{"state": str(done.state), "tasks": tasks, "plan": plan, "partitions": partitions}}
    print({RESULT!r} + json.dumps(found), flush=True)
"""


@dataclass(frozen=True)
class Run:
    """How one run of the DAG ended."""

    state: str
    tasks: Mapping[str, str]
    plan: str
    partitions: Mapping[str, Any]
    """What its events said of each partition."""
    resident: bool = False
    """Whether a driver that was up already did the build."""
    waited: bool = False
    """Whether a process that waited for it did."""


class Airflow:
    """A Python with an Airflow database of its own that runs the DAG once for each line of configuration."""

    def __init__(self, world: World) -> None:
        self.world = world
        home = world.home
        database = f"sqlite:///{home / 'airflow' / 'airflow.db'}"
        settings = {
            "AIRFLOW_HOME": str(home / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        }
        env = {**os.environ, **world.settings, **settings}
        migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(migrate, env=env, check=True, capture_output=True)
        with (home / "runs.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", TEST, str(ROOT / "dags")],
                env=env,
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def stop(self) -> None:
        """End it."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def run(self, connection: str, *, fail: str = "", lineage: str = "", **conf: str) -> Run:
        """Run the DAG to its end through a Spark connection; ``fail`` is where the build dies.

        ``lineage`` is the address of a server of OpenLineage.
        """
        assert self.process.stdin
        assert self.process.stdout
        settings = {
            "AIRFLOW_CONN_SPARK_DEFAULT": connection,
            "SEAMLINE_FAIL": fail,
            "OPENLINEAGE_URL": lineage,
        }
        print(json.dumps({"conf": conf, "settings": settings}), file=self.process.stdin, flush=True)
        self.said = said = list[str]()
        for line in self.process.stdout:
            if line.startswith(RESULT):
                resident = any("behind localhost" in each for each in said)
                waited = any("keeps ready" in each for each in said)
                return Run(**json.loads(line.removeprefix(RESULT)), resident=resident, waited=waited)
            said.append(line)
            print(line, end="")
        raise AssertionError("".join(said)[-6000:] + (self.world.home / "runs.log").read_text()[-6000:])


@pytest.fixture(scope="module")
def airflow(world: World) -> Iterator[Airflow]:
    """Make Airflow's database."""
    made = Airflow(world)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def first(airflow: Airflow, driver: Resident) -> Run:
    """Run the DAG for the dirty days with a resident driver; the demo's builds are spark-submits."""
    eventually("a process to wait for a build", prespawned.find_build_socket(driver.port).exists)
    done = airflow.run(driver.connection)
    assert done.state == "success", "".join(airflow.said)[-6000:]
    return done


def test_a_run_builds_certifies_and_serves_the_dirty_days(world: World, first: Run) -> None:
    """Every task with its real engine, in the order that the DAG says."""
    assert first.state == "success"
    assert set(first.tasks.values()) == {"success"}
    assert first.resident
    assert first.waited
    assert sorted(world.published()) == DAYS
    for view in world.pipeline.views:
        own = Certificates.ensure(world.layout).of(view=view.id)
        assert [(each.interval.id, each.passed) for each in own] == [(day, True) for day in DAYS]
    assert sorted(first.partitions) == [day.removesuffix("Z") for day in DAYS]
    for view, rows in first.partitions[DAYS[0].removesuffix("Z")]["rows"].items():
        assert Certificates.ensure(world.layout).of(view=view, interval=DAYS[0])[0].passed, rows
    assert not any(each["correction"] for each in first.partitions.values())
    counted = sum(row["flights"] for row in world.answer())
    assert counted == sum(1 for _ in read_flights(Span(end=parse_moment("2013-01-03"))))


def test_a_day_that_is_built_again_is_the_same(
    world: World, airflow: Airflow, first: Run, driver: Resident
) -> None:
    """Another generation, certified for who asked for it; the other day is left alone."""
    before, served = world.published(), world.answer()
    done = airflow.run(driver.connection, **{"from": DAYS[0], "to": DAYS[1]})
    assert done.state == "success", "".join(airflow.said)[-6000:]
    now = world.published()
    assert [day for day in DAYS if now[day] != before[day]] == DAYS[:1]
    assert world.answer() == served
    [(key, told)] = done.partitions.items()
    assert (key, told["correction"], told["cause"]) == (DAYS[0].removesuffix("Z"), True, "asked for")
    newest = Certificates.ensure(world.layout).of(interval=DAYS[0])[-1]
    assert (newest.generation, newest.made.actor) == (now[DAYS[0]], "airflow:dag_test")


def test_a_run_is_told_to_openlineage(world: World, airflow: Airflow, first: Run, driver: Resident) -> None:
    """By its build and its publication, whose parents are the tasks of one run of the DAG."""
    with receive() as received:
        day = {"from": DAYS[1], "to": "2013-01-03T00:00:00Z"}
        done = airflow.run(driver.connection, lineage=received.url, **day)
        assert done.state == "success", "".join(airflow.said)[-6000:]
        told = [(each["job"]["name"].rpartition(".")[2], each["eventType"]) for each in received.events]
        assert told == [
            ("build", "START"),
            ("build", "COMPLETE"),
            ("publish", "START"),
            ("publish", "COMPLETE"),
        ]
        parents = [each["run"]["facets"]["parent"] for each in received.events]
        assert len({each["root"]["run"]["runId"] for each in parents}) == 1
        assert {each["job"]["name"] for each in parents} == {
            "flights__batch.build",
            "flights__batch.publish",
        }
        facts = received.events[-1]["run"]["facets"]["seamline_batch"]
        assert facts["intervals"] == [DAYS[1]]
        served = {each["name"] for each in received.events[-1]["outputs"]}
        assert served == {str(world.layout.serving(view)) for view in world.pipeline.views}


def test_a_build_that_is_killed_is_built_again_by_the_next_run(
    world: World, airflow: Airflow, first: Run, driver: Resident
) -> None:
    """Half of what it wrote is committed; nobody sees it, and nobody waits for the dead.

    What it was to build is a row that is a week late: the next run builds the day that it is of, and no other.
    """
    world.late(DAYS[0], watermark="2013-01-10T06:00")
    before, served = world.published(), world.answer()
    died = airflow.run(driver.connection, fail="generation:1")
    assert (died.state, died.tasks["build"], died.tasks["publish"]) == ("failed", "failed", "upstream_failed")
    assert (world.published(), world.answer()) == (before, served)
    done = airflow.run(driver.connection)
    assert done.state == "success", "".join(airflow.said)[-6000:]
    now = world.published()
    assert [day for day in DAYS if now[day] != before[day]] == DAYS[:1]
    assert world.answer() == served


def test_a_run_with_nothing_to_do_skips(world: World, airflow: Airflow, first: Run, driver: Resident) -> None:
    """A green run that built nothing would announce data that is not there."""
    before = world.published()
    again = airflow.run(driver.connection)
    assert set(again.tasks.values()) == {"skipped"}
    assert world.published() == before


def test_the_serving_table_needs_none_of_us(world: World, first: Run, spark: SparkSession) -> None:
    """Its readers have other tools: plain Spark, Polars, DuckDB over deltalake."""
    path = str(world.layout.serving(world.pipeline.views[0]))
    expected = world.answer()
    assert plain(spark.read.format("delta").load(path).toArrow()) == expected
    assert plain(pl.read_delta(path).to_arrow()) == expected
    dataset = DeltaTable(path).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("serving", dataset)
        assert plain(connection.sql("SELECT * FROM serving").to_arrow_table()) == expected


def test_a_run_hands_its_plan_on_and_gives_its_days_back(world: World, first: Run) -> None:
    """What it was asked for is on the page of its build, and nobody has to wait for it any more."""
    assert claims_of(world.layout, now=datetime.now(UTC)) == ()
    assert "2 intervals, 1" in first.plan
    assert [f"| {day} |" in first.plan for day in DAYS] == [True, True]


def test_a_range_that_has_not_begun_fails_with_the_reason_first(
    airflow: Airflow, first: Run, driver: Resident
) -> None:
    """Not skipped: somebody asked for it, and it is not there. Tried once: it will not be there in a minute."""
    asked = {"from": "2999-01-01T00:00:00Z", "to": "2999-01-02T00:00:00Z"}
    failed = airflow.run(driver.connection, **asked)
    assert (failed.state, failed.tasks["plan"]) == ("failed", "failed")
    assert any(
        "OutsideLife: 2999-01-01T00:00:00Z/2999-01-02T00:00:00Z has not begun." in line
        for line in airflow.said
    )


def test_a_failed_expectation_fails_the_run_and_serves_the_old(
    world: World, airflow: Airflow, first: Run, driver: Resident
) -> None:
    """Wrong numbers are worse than old ones."""
    before, served = world.published(), world.answer()
    kept = world.definition.read_text()
    world.definition.write_text(
        kept.replace('Expect("flights", at_least=1)', 'Expect("flights", at_least=1000)')
    )
    try:
        failed = airflow.run(
            driver.connection, **{"from": DAYS[0], "to": DAYS[1], "reason": "expects too much"}
        )
    finally:
        world.definition.write_text(kept)
    assert failed.state == "failed"
    assert failed.tasks == {
        "plan": "success",
        "build": "success",
        "certify": "failed",
        "publish": "failed",
        "all_certified": "upstream_failed",
    }
    assert world.published() == before
    assert world.answer() == served
