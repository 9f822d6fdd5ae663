"""What the number of pipelines costs: a parse of all, the start of a task of one, and a reconcile of all.

    python -m benchmarks.many_pipelines [--counts 10,100,1000] [--rounds 3]

Each definition has two views and a file of its own. *Parse* is what the DAG file does in the DAG processor, in a
process that has imported Airflow, when the definitions have changed (first) and when they have not (warm). *Task* is
what the start of a task does for one of them: its DAG, and its compiled pipeline. *Reconcile* is one look at all
streams, all of which are stopped, without the start of the task's process. Wall-clock and CPU seconds; medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.results import Results

DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Rule, Tumbling, View, count, sum

pipeline = Pipeline(
    "{name}",
    source=KafkaSource(
        "{name}", "id STRING, shop STRING, amount DOUBLE, at TIMESTAMP", event_time="at", event_id=["id"]
    ),
    rules=[Rule("positive", "amount > 0")],
    batch=Batch(start="2026-01-01", interval="1 day"),
    views=[
        View("by_shop", keys=["shop"], window=Tumbling("1 hour"), measures={{"n": count(), "amount": sum("amount")}}),
        View("large", keys=["shop"], window=Tumbling("1 day"), measures={{"n": count(where="amount > 10")}}),
    ],
)
"""


def main(argv: list[str]) -> int:
    """Measure, print and keep; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_pipelines", description=__doc__)
    parser.add_argument("--counts", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=MEASURED, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.measure:
        print(json.dumps(MEASURED[options.measure]()))
        return 0
    print(machine())
    figures = {}
    for count in map(int, options.counts.split(",")):
        with tempfile.TemporaryDirectory(prefix="many-pipelines") as home:
            figures[count] = measure(Path(home), count, options.rounds)
        told = (f"{name} {wall:.2f} s ({cpu:.2f} CPU s)" for name, (wall, cpu) in figures[count].items())
        print(f"{count:,} pipelines: {', '.join(told)}")
    Results("many_pipelines").write({str(count): each for count, each in figures.items()})
    return 0


def measure(home: Path, count: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the medians of all rounds, by name."""
    definitions = home / "pipelines"
    definitions.mkdir()
    for number in range(count):
        name = f"orders_{number:05d}"
        (definitions / f"{name}.py").write_text(DEFINITION.format(name=name))
    env = {
        **os.environ,
        "SEAMLINE_PIPELINES": str(definitions),
        "SEAMLINE_HOME": str(home),
        "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
    }

    def ask(what: str) -> tuple[float, float]:
        command = [sys.executable, "-m", "benchmarks.many_pipelines", "--measure", what]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        wall, cpu = json.loads(done.stdout.splitlines()[-1])
        return wall, cpu

    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        shutil.rmtree(home / "verdicts", ignore_errors=True)
        for name, what in ASKED:
            found.setdefault(name, []).append(ask(what))
    return {
        name: (statistics.median(wall for wall, _ in each), statistics.median(cpu for _, cpu in each))
        for name, each in found.items()
    }


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock and the CPU seconds that something takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def parse() -> tuple[float, float]:
    """Parse all definitions."""
    from seamline.orchestration.dags import parsed_dags

    return timed(parsed_dags)


def start_task() -> tuple[float, float]:
    """Do what the start of a task of one pipeline does."""
    from seamline.lake.storage.layout import definitions_folder, home_folder
    from seamline.model.compile.catalog import load_pipeline
    from seamline.orchestration.dags import build_dags

    def start() -> None:
        build_dags(definitions_folder(), home_folder(), only="orders_00007__batch")
        load_pipeline(definitions_folder(), "orders_00007")

    # The SQL parser is imported by whichever definition is compiled first.
    load_pipeline(definitions_folder(), "orders_00003")
    return timed(start)


def reconcile() -> tuple[float, float]:
    """Look at all streams once."""
    from seamline.lake.storage.layout import definitions_folder, locate_tables
    from seamline.lake.tables.control_table import ControlTable, Desired
    from seamline.model.compile.catalog import load_catalog
    from seamline.orchestration.reconciling_all import reconcile_all

    for name in load_catalog(definitions_folder()).pipelines:
        control = ControlTable.ensure(locate_tables(name))
        if control.read().desired is Desired.UNSET:
            control.want(Desired.STOPPED, actor="benchmark", reason="", now=datetime.now(UTC))

    def look() -> None:
        pipelines = load_catalog(definitions_folder()).pipelines.values()
        done = reconcile_all(list(pipelines), {"kafka_default": {}})
        assert not any(each.error or each.started for each in done)

    return timed(look)


MEASURED = {"parse": parse, "task": start_task, "reconcile": reconcile}
"""What a process of its own measures, by name."""

ASKED = (("parse first", "parse"), ("parse warm", "parse"), ("task", "task"), ("reconcile", "reconcile"))
"""What is measured in each round, in order, and by what."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
