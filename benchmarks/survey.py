"""What a survey costs an epoch, and what an id costs the driver. `python -m benchmarks.survey`

Kernel and register in one process, without Spark and Kafka: 10,000 flights an epoch, one view of plain measures; the
median of the epochs after the first few. The memory is that of a million ids of 20 letters held by the register.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import psutil
import pyarrow as pa

from benchmarks.kernels import records, task
from benchmarks.machine import machine
from benchmarks.views import EPOCHS, MEASURES, NOW, ROOT, ROWS, WARM
from seamline import CountWindow, Tumbling, View
from seamline.kernel.epoch_kernel import open_worker_duckdb, run
from seamline.kernel.survey import survey_records, survey_schema
from seamline.lake.storage.layout import Layout
from seamline.local.flights import Span, read_flights
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.spark.stream.register import Register

HOURS = View("v", keys=["carrier"], window=Tumbling("1 hour"), measures=MEASURES)
IDS, CHUNK = 1_000_000, 100_000


def main() -> int:
    """Time an epoch plain, with a horizon for duplicates, and with count windows."""
    print(machine())
    plain = load_catalog(ROOT / "include" / "pipelines").pipeline("flights").definition
    plain = replace(plain, views=[HOURS], lookups=())
    horizon = replace(plain, source=replace(plain.source, dedup_within="1 hour"))
    counts = replace(plain, views=[replace(HOURS, window=CountWindow(100))])
    values = [json.dumps(each).encode() for each in islice(read_flights(Span()), ROWS)]
    base = None
    for name, definition in (("plain", plain), ("dedup_within", horizon), ("CountWindow", counts)):
        seconds = timed(definition, values)
        base = base or seconds
        print(
            f"{name}: {seconds * 1000:,.0f} ms an epoch of {ROWS:,} records, {seconds / base:.2f} times plain"
        )
    print(f"{held(compile_pipeline(horizon)):.0f} bytes of the driver's memory for each id")
    return 0


def timed(definition: Pipeline, values: list[bytes]) -> float:
    """Survey and compute epochs of the same records; give the median seconds."""
    pipeline = compile_pipeline(definition)
    topic = definition.source.topics[0]
    with tempfile.TemporaryDirectory() as folder:
        register = Register(pipeline, Layout(Path(folder), "flights"))
        seconds = []
        for at in range(EPOCHS):
            batches = records(values, topic, at * len(values), at=NOW).to_batches()
            began = time.perf_counter()
            config = task(pipeline, at, Path(folder))
            if pipeline.surveyed:
                found = pa.concat_tables(survey_records(open_worker_duckdb(), batches, config))
                config = replace(config, marks=register.decide_marks(found, None))
            run(batches, config)
            if pipeline.surveyed:
                register.commit_survey()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds[WARM:])


def held(pipeline: CompiledPipeline) -> float:
    """Let a register hold a million ids; give the growth of the process per id, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        register = Register(pipeline, Layout(Path(folder), "flights"))
        before = psutil.Process().memory_info().rss
        for first in range(0, IDS, CHUNK):
            register.decide_marks(several(pipeline, first), None)
            register.commit_survey()
        return (psutil.Process().memory_info().rss - before) / IDS


def several(pipeline: CompiledPipeline, first: int) -> pa.Table:
    """Make the survey of records with ids of their own."""
    numbers = range(first, first + CHUNK)
    at = datetime(2013, 6, 1, tzinfo=UTC)
    known = {
        "_topic": ["t"] * CHUNK,
        "_topic_id": ["t"] * CHUNK,
        "_partition": [0] * CHUNK,
        "_offset": list(numbers),
        "_event_time": [at] * CHUNK,
        "carrier": [f"{number:020d}" for number in numbers],
        "flight": list(numbers),
        "origin": ["EWR"] * CHUNK,
        "sched_dep": [at + timedelta(seconds=number) for number in numbers],
    }
    schema = survey_schema(pipeline)
    return pa.table([pa.array(known[name], schema.field(name).type) for name in schema.names], schema=schema)


if __name__ == "__main__":
    sys.exit(main())
