"""What batch costs: a day, 30 days, the year, a late row, a mended definition. `python -m benchmarks.builds`

The shipped kernel, tables, builds, certificates and publications in one Spark of this process, without Kafka and
Airflow. The year of flights is read as epochs of 10,000 records; each figure is of the run that prints it. Upkeep, an
hourly DAG, is done after every ten runs and is in no figure.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from benchmarks.kernels import records
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.views import NOW, ROOT
from seamline import Rule
from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.local.flights import read_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.quality import certify
from seamline.quality.run_comparing import compare_run
from seamline.quality.suites import SuiteResults, evaluate_suites
from seamline.spark.build.build import build_intervals
from seamline.spark.build.reprocessing import reprocess_epochs
from seamline.spark.session.session import open_spark_session
from seamline.testing.tables import Tables

ROWS, DAYS, SMALL, KEPT_EVERY = 10_000, 5, 100, 10
FIRST = datetime(2013, 1, 1, tzinfo=UTC)


def main() -> int:
    """Build a master of a year, then time what is asked of it."""
    print(machine(), flush=True)
    pipeline = load_pipeline(ROOT / "include" / "pipelines", "flights")
    print(f"import of great_expectations in a new process: {import_seconds():.1f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with timed("session"):
            spark = open_spark_session("benchmarks.builds")
        engine = Year(pipeline, Path(folder), spark)
        with timed("the year read, epochs of 10,000"):
            engine.read()
        engine.run(day(200))
        each = [engine.run(day(number)) for number in range(DAYS)]
        typical = statistics.median(sum(seconds) for seconds, _ in each)
        parts = [statistics.median(part) for part in zip(*(seconds for seconds, _ in each), strict=True)]
        print(f"one day, median of {DAYS}: {spoken(parts)}", flush=True)
        checking = statistics.median(engine.checking[-DAYS:])
        print(f"Great Expectations, of it: {checking:.2f} s, {checking / typical:.0%} of a run", flush=True)
        shown("30 days", *engine.run(Interval(FIRST + timedelta(days=30), FIRST + timedelta(days=60))))
        shown("the year", *engine.run(Interval(FIRST, FIRST + timedelta(days=365))))
        one_by_one = 0.0
        for number in range(SMALL):
            if number % KEPT_EVERY == 0:
                engine.upkeep()
            one_by_one += sum(engine.run(day(number))[0])
        engine.upkeep()
        at_once = sum(engine.run(Interval(FIRST, FIRST + timedelta(days=SMALL)))[0])
        print(f"{SMALL} days one by one: {one_by_one:.1f} s, as one range: {at_once:.1f} s", flush=True)
        engine.epoch([late(engine)])
        seconds, rows = engine.run(None)
        shown("one late row in the year", seconds, rows)
        late_row = sum(seconds) / typical
        print(f"one late row / one day: {late_row:.2f}")
        engine.redefine(mended(pipeline))
        engine.epoch([])
        began = time.monotonic()
        again = reprocess_epochs(spark, engine.pipeline, engine.layout, until=engine.number)
        spent = time.monotonic() - began
        print(f"reprocessed: {again:,} records in {spent:.1f} s, {again / spent:,.0f} a second")
        shown("the year, fixed", *engine.run(None))
    Results("builds").write(
        {
            "machine": machine(),
            "day_s": typical,
            "late_row_over_interval": late_row,
            "hundred_one_by_one_s": one_by_one,
            "hundred_at_once_s": at_once,
        }
    )
    return 0


class Year(Tables):
    """The engine of scenarios, fed with epochs of flights."""

    number = 0
    offset = 0

    @cached_property
    def checking(self) -> list[float]:
        """Seconds in Great Expectations, run by run."""
        return []

    def read(self) -> None:
        """Hold the year, then an edge that closes its last day."""
        year = read_flights()
        while some := [json.dumps(each).encode() for each in islice(year, ROWS)]:
            self.epoch(some)
        closing = {"carrier": "UA", "flight": 1, "origin": "EWR", "sched_dep": "2014-01-02T00:00:00Z"}
        self.epoch([json.dumps(closing).encode()])

    def epoch(self, values: list[bytes]) -> None:
        """Hold one epoch, an edge."""
        topic = self.pipeline.definition.source.topics[0]
        ranges = ()
        if values:
            ranges = (OffsetRange(Lane(f"id of {topic}", 0), self.offset, self.offset + len(values)),)
        blank = Epoch(-1, 0, NOW, self.pipeline.record_version, edge=True, ranges=ranges)
        held = self.commit(blank, records(values, topic, self.offset, at=NOW))
        assert held is not None
        self.number, self.offset = held.number, self.offset + len(values)

    def evaluate(self, view: CompiledView, presented: pa.Table) -> SuiteResults:
        """Evaluate suites as certificates do, and note the time."""
        began = time.monotonic()
        found = evaluate_suites(view, presented)
        self.checking[-1] += time.monotonic() - began
        return found

    def run(self, asked: Interval | None) -> tuple[list[float], int]:
        """Plan, build, certify, compare and publish; give the seconds of each, and the rows that were read."""
        marks = [time.monotonic()]
        plan = plan_run(self.pipeline, self.layout, asked=asked, dirty=asked is None)
        job = job_of(self.pipeline, plan, run=f"{asked or 'dirty'} {self.number}")
        marks.append(time.monotonic())
        build_intervals(self.spark, self.pipeline, self.layout, job)
        marks.append(time.monotonic())
        with patch.object(certify, "evaluate_suites", self.evaluate):
            self.checking.append(0.0)
            assert all(each.passed for each in certify.certify_run(self.pipeline, self.layout, job.run))
        marks.append(time.monotonic())
        assert not any(each.alarm for each in compare_run(self.pipeline, self.layout, job.run))
        marks.append(time.monotonic())
        assert publish_run(self.pipeline, self.layout, job.run).statements
        marks.append(time.monotonic())
        return [b - a for a, b in pairwise(marks)], plan.rows


def day(number: int) -> Interval:
    """Return a day of 2013, from 0."""
    return Interval(FIRST + timedelta(days=number), FIRST + timedelta(days=number + 1))


def late(engine: Year) -> bytes:
    """Make one more flight of a day that is built."""
    flight = {"carrier": "UA", "flight": 9999, "origin": "EWR", "sched_dep": "2013-03-03T12:00:00Z"}
    return json.dumps(flight | {"dep_delay": 1.0}).encode()


def mended(pipeline: CompiledPipeline) -> CompiledPipeline:
    """Edit a rule, as somebody does who finds it wrong; all that is dirty may be built in one run."""
    definition = pipeline.definition
    rules = [Rule("known origin", "origin IN ('EWR', 'JFK')")]
    return compile_pipeline(replace(definition, rules=rules, batch=replace(definition.batch, max_dirty=400)))


def shown(name: str, seconds: list[float], rows: int) -> None:
    """Print a run."""
    print(f"{name}: {rows:,} rows, {spoken(seconds)}, {rows / sum(seconds):,.0f} rows a second", flush=True)


def spoken(seconds: list[float]) -> str:
    """Say the parts of a run."""
    parts = zip(("plan", "build", "certify", "compare", "publish"), seconds, strict=True)
    return f"{sum(seconds):.1f} s (" + ", ".join(f"{name} {spent:.2f}" for name, spent in parts) + ")"


def import_seconds() -> float:
    """Time an import as a task that certifies pays it."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import great_expectations"], check=True, capture_output=True)
    return time.monotonic() - began


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Print how long a step took."""
    began = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
