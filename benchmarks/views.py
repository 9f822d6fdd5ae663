"""What one epoch costs by the number of its views: records are parsed once. `python -m benchmarks.views`

The shipped kernel and writer in one process, without Spark and Kafka: 10,000 flights an epoch, views of plain
measures over carrier, origin and destination; the median of the epochs after the first few.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa

from benchmarks.kernels import next_task, records
from benchmarks.machine import machine
from seamline import Sliding, Tumbling, View, avg, count, max, min, sum
from seamline.kernel.epoch_kernel import run
from seamline.lake.storage.layout import Layout
from seamline.local.flights import Span, read_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.stream.epoch_writer import Writer

ROOT = Path(__file__).resolve().parents[1]
ROWS, EPOCHS, WARM = 10_000, 12, 3
NOW = datetime(2014, 1, 3, tzinfo=UTC)
KEYS = (["carrier"], ["origin"], ["dest"], ["carrier", "origin"])
MEASURES = {
    "flights": count(),
    "delay": avg("dep_delay"),
    "total": sum("dep_delay"),
    "least": min("dep_delay"),
    "most": max("dep_delay"),
}


def main() -> int:
    """Time an epoch for 1, 5 and 20 views, and count the rows that windows cost."""
    print(machine())
    values = [json.dumps(each).encode() for each in islice(read_flights(Span()), ROWS)]
    base = None
    for number in (1, 5, 20):
        views = [
            View(
                f"v{at}",
                keys=KEYS[at % len(KEYS)],
                window=Tumbling(f"{1 + at // 4} hours"),
                measures=MEASURES,
            )
            for at in range(number)
        ]
        seconds, _ = timed(views, values)
        base = base or seconds
        print(
            f"{number:>2} views: {seconds * 1000:,.0f} ms an epoch of {ROWS:,} rows, {seconds / base:.2f} times one"
        )
    written = {}
    windows = {
        "tumbling 1 minute": Tumbling("1 minute"),
        "sliding 24 hours by 1 minute": Sliding("24 hours", "1 minute"),
    }
    for name, window in windows.items():
        _, written[name] = timed(
            [View("v", keys=["carrier"], window=window, measures=MEASURES)], values, epochs=1
        )
        print(f"{name}: {written[name] / ROWS:.3f} rows written per event")
    return 0 if len(set(written.values())) == 1 else 1


def timed(views: list[View], values: list[bytes], *, epochs: int = EPOCHS) -> tuple[float, int]:
    """Commit epochs of the same records; give the median seconds and the slices' rows per epoch."""
    definition = load_pipeline(ROOT / "include" / "pipelines", "flights").definition
    pipeline = compile_pipeline(replace(definition, views=views, lookups=()))
    topic = pipeline.definition.source.topics[0]
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Layout(Path(folder), "flights"), pipeline, 1)
        seconds, rows = [], 0
        for at in range(epochs):
            raw = records(values, topic, at * len(values), at=NOW)
            began = time.perf_counter()
            config = next_task(writer)
            result = run(raw.to_batches(), config)
            ranges = (OffsetRange(Lane("t", 0), at * len(values), (at + 1) * len(values)),)
            epoch = Epoch(config.epoch, 1, datetime.now(UTC), pipeline.record_version, ranges=ranges)
            writer.commit(epoch, result, writer.current)
            seconds.append(time.perf_counter() - began)
            rows = sum_of(result.states)
        return statistics.median(seconds[WARM:] or seconds), rows


def sum_of(states: dict[str, list[pa.Table]]) -> int:
    """Count the rows of states."""
    total = 0
    for tables in states.values():
        for table in tables:
            total += table.num_rows
    return total


if __name__ == "__main__":
    sys.exit(main())
