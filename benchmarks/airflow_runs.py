"""What a batch run costs in a real Airflow, by kind of Spark connection. `python -m benchmarks.airflow_runs`

A standalone Airflow on SQLite and the shipped DAG over a warehouse of twelve days of flights, read beforehand. Each
day is asked for with `airflow backfill create` and timed until a reader sees it served, one day after the other; the
first of each kind is cold and told apart. Each figure is of the run that prints it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from benchmarks.builds import FIRST, ROWS, Year
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.views import ROOT
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.local.airflow import AirflowStandalone
from seamline.local.flights import read_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.time.intervals import format_utc_instant
from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_client import quote_path_segment
from seamline.spark.session.session import open_spark_session

DAG = "flights__batch"
WARM = 2
TASKS = ("plan", "build", "certify", "publish")
WITHIN = 300.0
WITHOUT_SUITES = """
import runpy
from dataclasses import replace

from seamline import ExpectationSuite

shipped = runpy.run_path({shipped!r})["flights"]
flights = replace(shipped, views=[
    replace(view, expect=[each for each in view.expect if not isinstance(each, ExpectationSuite)])
    for view in shipped.views
])
del shipped
"""
"""The demo's pipeline as most are: importing what evaluates a suite takes longer than a small build."""


@dataclass(frozen=True)
class Served:
    """One day: seconds from the command to the answer, in the command, and in each task by itself."""

    whole: float
    command: float
    tasks: Mapping[str, float]


def main() -> int:
    """Time days through a spark-submit each, then through a resident driver."""
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = prepared(home)
        day, middles = 0, {}
        for kind, connection in (("spark", {"host": "local[2]"}), ("spark_connect", resident(settings))):
            airflow = standalone(home / kind, settings, {"conn_type": kind, **connection})
            airflow.start()
            try:
                airflow.api.unpause(DAG)
                settled(airflow.api)
                days = []
                for _ in range(1 + WARM):
                    days.append(served(airflow, Layout(home / "warehouse", "flights"), day))
                    day += 1
                middles[kind] = told(kind, days)
            finally:
                airflow.stop()
        seamline(settings, "driver", "stop")
    Results("airflow_runs").write(
        {"machine": machine(), **{kind: asdict(middle) for kind, middle in middles.items()}}
    )
    return 0


def prepared(home: Path) -> dict[str, str]:
    """Read the first days into a warehouse, and give the settings of all that works on it."""
    spark = open_spark_session("benchmarks.airflow_runs")
    engine = Year(load_pipeline(ROOT / "include" / "pipelines", "flights"), home / "warehouse", spark)
    engine.epoch([json.dumps(each).encode() for each in islice(read_flights(), ROWS)])
    closing = {"carrier": "UA", "flight": 1, "origin": "EWR", "sched_dep": "2013-01-13T00:00:00Z"}
    engine.epoch([json.dumps(closing).encode()])
    spark.stop()
    definitions = home / "pipelines"
    definitions.mkdir()
    shipped = ROOT / "include" / "pipelines" / "flights.py"
    (definitions / "flights.py").write_text(WITHOUT_SUITES.format(shipped=str(shipped)))
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "include"),
        "SEAMLINE_HOME": str(home),
        "SEAMLINE_PIPELINES": str(definitions),
        "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
    }


def resident(settings: Mapping[str, str]) -> dict[str, object]:
    """Start a resident driver; give its address."""
    seamline(settings, "driver", "start")
    return {"host": "localhost", "port": 15002}


def seamline(settings: Mapping[str, str], *words: str) -> None:
    """Run a command of ours."""
    command = [sys.executable, "-m", "seamline.cli", *words]
    subprocess.run(command, env={**os.environ, **settings}, check=True, stdout=subprocess.DEVNULL)


def standalone(
    home: Path, settings: Mapping[str, str], connection: Mapping[str, object]
) -> AirflowStandalone:
    """Make an Airflow whose builds go through a connection."""
    env = {**settings, "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection)}
    return AirflowStandalone(home, 28080, root=ROOT, env=env)


def settled(api: AirflowApi) -> None:
    """Wait for the scheduled run, which builds what is dirty."""
    until = time.monotonic() + WITHIN
    while True:
        runs = api.call("GET", f"/dags/{DAG}/dagRuns?limit=10")["dag_runs"]
        if runs and all(each["state"] in ("success", "failed") for each in runs):
            return
        if time.monotonic() > until:
            raise TimeoutError("the scheduled run has not ended")
        time.sleep(0.5)


def served(airflow: AirflowStandalone, layout: Layout, number: int) -> Served:
    """Ask Airflow for a day and wait until it is served anew."""
    day = FIRST + timedelta(days=number)
    before, began = generations(layout, day), time.monotonic()
    done = airflow.backfill(DAG, "--from-date", f"{day:%Y-%m-%d}", "--to-date", f"{day:%Y-%m-%d}")
    done.check_returncode()
    commanded = time.monotonic() - began
    while len(generations(layout, day) - before) < len(before):
        if time.monotonic() - began > WITHIN:
            raise TimeoutError(f"{format_utc_instant(day)} is not served")
        time.sleep(0.05)
    whole = time.monotonic() - began
    settled(airflow.api)
    # Airflow refuses another one until it has looked again whether this one is over.
    airflow.api.await_backfill(DAG, timeout=WITHIN)
    return Served(whole, commanded, task_seconds(airflow.api, day))


def generations(layout: Layout, day: datetime) -> set[tuple[str, str]]:
    """Return what is served of a day: the generation of each view."""
    published = ManifestTable.ensure(layout).read().published
    return {
        (view, each.generation)
        for (view, start), each in published.items()
        if start == format_utc_instant(day)
    }


def task_seconds(api: AirflowApi, day: datetime) -> dict[str, float]:
    """Return how long each task of a day's backfill run took, from its start to its end."""
    [run] = [
        each for each in api.runs(DAG, "backfill") if each["data_interval_start"] == format_utc_instant(day)
    ]
    path = f"/dags/{DAG}/dagRuns/{quote_path_segment(run['dag_run_id'])}/taskInstances"
    found = {each["task_id"]: each["duration"] or 0.0 for each in api.call("GET", path)["task_instances"]}
    return {name: found[name] for name in TASKS}


def told(kind: str, days: Sequence[Served]) -> Served:
    """Print the first day, and the median of the others; give the latter."""
    first, *warm = days
    print(f"{kind}, the first day: {spoken(first)}", flush=True)
    middle = Served(
        statistics.median(each.whole for each in warm),
        statistics.median(each.command for each in warm),
        {name: statistics.median(each.tasks[name] for each in warm) for name in TASKS},
    )
    print(f"{kind}, median of {len(warm)}: {spoken(middle)}", flush=True)
    return middle


def spoken(served: Served) -> str:
    """Write one in a line."""
    tasks = ", ".join(f"{name} {seconds:.1f}" for name, seconds in served.tasks.items())
    rest = served.whole - served.command - sum(served.tasks.values())
    return (
        f"{served.whole:.1f} s from backfill create to served ({tasks}; "
        f"the command {served.command:.1f}; Airflow's scheduling and starting of tasks {rest:.1f})"
    )


if __name__ == "__main__":
    sys.exit(main())
