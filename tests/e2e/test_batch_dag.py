"""The batch DAG on a real Airflow database and a real Spark: plan, build, certify, publish, and who can read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from seamline.lake.certificates import Certificates
from seamline.lake.claims import claims_of
from seamline.lake.layout import Layout
from seamline.lake.manifest import ManifestTable
from seamline.local.flights import Span, flights
from seamline.model.catalog import load
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch
from seamline.model.intervals import parse_moment
from seamline.model.offsets import Lane, OffsetRange
from seamline.serve.read import read
from seamline.spark.kernel import KernelConfig, run
from seamline.spark.writer import Writer

ROOT = Path(__file__).parents[2]
DAYS = ["2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"]
LANE = Lane("T", 0)
RESULT = "RESULT "
TEST = f"""
import json, sys
from airflow.dag_processing.dagbag import DagBag
from airflow.models.renderedtifields import RenderedTaskInstanceFields
for line in sys.stdin:
    dag = DagBag(sys.argv[1]).dags["flights__batch"]
    done = dag.test(run_conf=json.loads(line))
    tasks = {{each.task_id: str(each.state) for each in done.get_task_instances()}}
    build = next(each for each in done.get_task_instances() if each.task_id == "build")
    plan = (RenderedTaskInstanceFields.get_templated_fields(build) or {{}}).get("plan") or ""
    print({RESULT!r} + json.dumps({{"state": str(done.state), "tasks": tasks, "plan": plan}}), flush=True)
"""


@dataclass(frozen=True)
class Run:
    """How one run of the DAG ended."""

    state: str
    tasks: Mapping[str, str]
    plan: str


class World:
    """A warehouse with two January days of flights in its master, and an Airflow that has not run yet."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.definition = home / "pipelines" / "flights.py"
        self.definition.parent.mkdir()
        self.definition.write_text((ROOT / "include" / "pipelines" / "flights.py").read_text())
        self.layout = Layout(home / "warehouse", "flights")
        self.settings = {
            "AIRFLOW_HOME": str(home / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow' / 'airflow.db'}",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "GX_ANALYTICS_ENABLED": "false",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_JOBS": str(ROOT / "spark_jobs"),
            "SEAMLINE_PIPELINES": str(self.definition.parent),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }

    @property
    def pipeline(self) -> CompiledPipeline:
        """The definition as it is now."""
        return load(self.definition.parent).pipeline("flights")

    def fill(self) -> None:
        """Commit one epoch, an edge, as the stream would: the shipped kernel and writer, without Spark."""
        span = Span(parse_moment("2013-01-01"), parse_moment("2013-01-03"))
        values = [json.dumps(flight).encode() for flight in flights(span)]
        writer = Writer(self.layout, self.pipeline, 1)
        number = writer.take()
        result = run(
            [raw(values)],
            KernelConfig(
                pipeline=self.pipeline,
                topic_ids={"flights.departures": LANE.topic_id},
                token=1,
                epoch=number,
                held={},
                views=writer.current,
                master=writer.master.table.root,
                quarantine=writer.quarantine.root,
            ),
        )
        epoch = Epoch(
            number=number,
            token=1,
            committed_at=datetime.now(UTC),
            record_version=self.pipeline.record_version,
            edge=True,
            ranges=(OffsetRange(LANE, 0, len(values)),),
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            watermark=parse_moment("2013-01-03T06:00"),
        )
        writer.commit(epoch, result, writer.current)

    def migrate(self) -> None:
        """Make Airflow's database."""
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(command, env={**os.environ, **self.settings}, check=True, capture_output=True)

    def start(self) -> None:
        """Start a Python of our settings that runs the DAG once for each line of configuration."""
        with (self.home / "runs.log").open("wb") as log:
            self.airflow = subprocess.Popen(
                [sys.executable, "-c", TEST, str(ROOT / "dags")],
                env={**os.environ, **self.settings},
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def stop(self) -> None:
        """End it."""
        assert self.airflow.stdin
        assert self.airflow.stdout
        self.airflow.stdin.close()
        self.airflow.wait(60)
        self.airflow.stdout.close()

    def run(self, **conf: str) -> Run:
        """Run the DAG to its end."""
        assert self.airflow.stdin
        assert self.airflow.stdout
        print(json.dumps(conf), file=self.airflow.stdin, flush=True)
        self.said = said = list[str]()
        for line in self.airflow.stdout:
            if line.startswith(RESULT):
                return Run(**json.loads(line.removeprefix(RESULT)))
            said.append(line)
        raise AssertionError("".join(said)[-6000:] + (self.home / "runs.log").read_text()[-6000:])

    def published(self) -> dict[str, str]:
        """Give the generation that is served, by interval."""
        manifest = ManifestTable.ensure(self.layout).read()
        return {interval: found.generation for (_, interval), found in manifest.published.items()}

    def answer(self) -> list[dict[str, Any]]:
        """Read the merged answer."""
        return plain(
            read(
                "flights.delay_by_carrier",
                warehouse=self.layout.warehouse,
                definitions=self.definition.parent,
            )
        )


def raw(values: list[bytes]) -> pa.RecordBatch:
    """Make raw Kafka rows as Spark hands them over."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.nulls(count, pa.string()),
            "topic": pa.array(["flights.departures"] * count),
            "partition": pa.array([LANE.partition] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([datetime(2013, 1, 3, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")),
        }
    )


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Give rows in one order, with the columns that every reader has."""
    names = ["carrier", "window_start", "flights", "departed", "delay", "mean_delay", "p95_delay", "planes"]
    rows = table.select(names).to_pylist()
    return sorted(rows, key=lambda row: (row["carrier"], row["window_start"]))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Make the master and the database."""
    made = World(tmp_path_factory.mktemp("batch"))
    made.fill()
    made.migrate()
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def first(world: World) -> Run:
    """Run the DAG for the dirty days."""
    done = world.run()
    assert done.state == "success", "".join(world.said)[-6000:]
    return done


def test_a_run_builds_certifies_and_serves_the_dirty_days(world: World, first: Run) -> None:
    """Every task with its real engine, in the order that the DAG says."""
    assert first.state == "success"
    assert set(first.tasks.values()) == {"success"}
    assert sorted(world.published()) == DAYS
    for view in world.pipeline.views:
        own = Certificates.ensure(world.layout).of(view=view.id)
        assert [(each.interval.id, each.passed) for each in own] == [(day, True) for day in DAYS]
    counted = sum(row["flights"] for row in world.answer())
    assert counted == sum(1 for _ in flights(Span(end=parse_moment("2013-01-03"))))


def test_a_run_with_nothing_to_do_skips(world: World, first: Run) -> None:
    """A green run that built nothing would announce data that is not there."""
    before = world.published()
    again = world.run()
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


def test_a_range_that_has_not_begun_fails_with_the_reason_first(world: World, first: Run) -> None:
    """Not skipped: somebody asked for it, and it is not there. Tried once: it will not be there in a minute."""
    asked = {"from": "2999-01-01T00:00:00Z", "to": "2999-01-02T00:00:00Z"}
    failed = world.run(**asked)
    assert (failed.state, failed.tasks["plan"]) == ("failed", "failed")
    assert any(
        "OutsideLife: 2999-01-01T00:00:00Z/2999-01-02T00:00:00Z has not begun." in line for line in world.said
    )


def test_a_failed_expectation_fails_the_run_and_serves_the_old(world: World, first: Run) -> None:
    """Wrong numbers are worse than old ones."""
    before, served = world.published(), world.answer()
    kept = world.definition.read_text()
    world.definition.write_text(
        kept.replace('Expect("flights", at_least=1)', 'Expect("flights", at_least=1000)')
    )
    try:
        failed = world.run(**{"from": DAYS[0], "to": DAYS[1], "reason": "expects too much"})
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
