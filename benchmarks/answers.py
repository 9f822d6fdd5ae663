"""What an answer costs by how many windows it has: the whole path from the tables to rows on paper.

    python -m benchmarks.answers [--windows 1000000] [--keys 1] [--window "1 minute"] [--interval "1 day"]
        [--published 0.5] [--slide DURATION] [--session] [--profile] [--formats]

Tables of a pipeline are written without its stream: the states of so many windows, those of the first intervals in
generations that are published and certified, the others in slices. Then ``seamline.read``, once cold and twice warm,
and what is made of an answer: its footer, CSV, JSON, pages of the API, the serving table.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import machine
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.read import serving_table
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT, generations_schema, partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.window_arithmetic import Gaps
from seamline.serve.answer_request import AnswerPage
from seamline.serve.answer_request import encode_answer_page as page
from seamline.serve.query import format_answer_footer, rows_written
from seamline.serve.read import read

BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MOST_FILES = 2000
"""A serving table has a file for each interval."""
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Session, Sliding, Tumbling, View, avg, count

sensors = Pipeline(
    name="sensors",
    source=KafkaSource(
        topic="readings",
        schema="sensor STRING, value BIGINT, at TIMESTAMP NOT NULL",
        event_time="at",
    ),
    views=[
        View("readings", keys=["sensor"], window={window}, measures={{"readings": count(), "mean": avg("value")}})
    ],
    batch=Batch(interval="{interval}", start="2000-01-01"),
)
"""


class Tables:
    """A pipeline whose tables hold so many windows."""

    def __init__(self, home: Path, asked: argparse.Namespace) -> None:
        self.definitions, self.warehouse = home / "pipelines", home / "warehouse"
        self.definitions.mkdir()
        (self.definitions / "sensors.py").write_text(
            DEFINITION.format(window=window_of(asked), interval=asked.interval)
        )
        self.pipeline: CompiledPipeline = load_pipeline(self.definitions, "sensors")
        self.view = self.pipeline.views[0]
        self.layout = Layout(self.warehouse, "sensors")
        self.fill(asked)

    def fill(self, asked: argparse.Namespace) -> None:
        """Write one epoch, and publish what the first intervals have of it."""
        master, ledger = Master.ensure(self.layout, self.pipeline), Ledger.ensure(self.layout)
        slices = Slices.ensure(self.layout, self.view)
        manifest = ManifestTable.ensure(self.layout)
        manifest.read()
        manifest.commit([Statement(act, self.view.id, epoch=0) for act in (Act.BIRTH, Act.FLIP)])
        states = self.states(asked.windows, asked.keys)
        slices.append(states, from_epoch=0, to_epoch=0)
        row = Epoch(
            0, 0, BEGIN, self.pipeline.record_version, edge=True, watermark=BEGIN, frontiers={self.view.id: 0}
        )
        master.commit(row, [])
        ledger.append([row])
        self.publish(manifest, states, asked.published)

    def states(self, windows: int, keys: int) -> pa.Table:
        """Make the states of each key in each of so many windows, one after the other."""
        gap = isinstance(self.view.windows, Gaps) and 2 * self.view.windows.gap * MICROSECOND
        step = gap or self.view.pane
        number = np.repeat(np.arange(windows, dtype=np.int64), keys)
        moments = (BEGIN - EPOCH) // MICROSECOND + number * (step // MICROSECOND)
        names = pa.array([f"sensor {key}" for key in range(keys)]).take(
            pa.array(np.tile(np.arange(keys), windows))
        )
        known: dict[str, Any] = {
            "sensor": names,
            "pane": pa.array(moments, pa.int64()).cast(INSTANT),
            "_last": pa.array(moments, pa.int64()).cast(INSTANT),
        }
        ones = pa.array(np.ones(len(number), np.int64))
        schema = partial_schema(self.view)
        return pa.table([known.get(name, ones) for name in schema.names], names=schema.names).cast(schema)

    def publish(self, manifest: ManifestTable, states: pa.Table, share: float) -> None:
        """Write the generations of the first share of the intervals, and name them."""
        table = Table.ensure(
            self.layout.generations(self.view), generations_schema(self.view), partition_by=["interval"]
        )
        length = self.pipeline.grid.length // MICROSECOND
        cells = states["pane"].cast(pa.int64()).to_numpy() // length
        numbers, first = np.unique(cells, return_index=True)
        ends = [*first[1:], states.num_rows]
        made, said = [], []
        for number, start, end in list(zip(numbers.tolist(), first, ends, strict=True))[
            : int(share * len(numbers))
        ]:
            id = format_utc_instant(EPOCH + number * length * MICROSECOND)
            own = states.slice(start, end - start)
            own = own.append_column("generation", pa.array(["g"] * own.num_rows))
            stats = ["generation", "pane"]
            made.append(
                data_files.write_data_file(
                    own, table.root, f"{number}.parquet", stats=stats, partition={"interval": id}
                )
            )
            said.append(
                Statement(
                    Act.PUBLISH,
                    self.view.id,
                    epoch=0,
                    interval=id,
                    generation="g",
                    rows=own.num_rows,
                    certified=True,
                    at=BEGIN,
                )
            )
        if said:
            table.append(made)
            manifest.read()
            manifest.commit(said)


def window_of(asked: argparse.Namespace) -> str:
    """Write the view's window."""
    if asked.session:
        return f'Session("{asked.window}")'
    return f'Sliding("{asked.window}", "{asked.slide}")' if asked.slide else f'Tumbling("{asked.window}")'


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say how long something took, by the clock and in CPU seconds, and the most memory held so far."""
    at, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, spent = time.perf_counter() - at, time.process_time() - cpu
    print(f"{what:<24}{wall:8.2f} s {spent:8.2f} CPU s   peak {peak:6.0f} MB", flush=True)


def profiled(what: str, make: Callable[[], object]) -> None:
    """Do something under the profiler."""
    with timed(what), cProfile.Profile() as found:
        make()
    import pstats

    pstats.Stats(found).sort_stats("cumulative").print_stats(35)


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--windows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--window", default="1 minute")
    parser.add_argument("--slide", default="")
    parser.add_argument("--session", action="store_true")
    parser.add_argument("--interval", default="1 day")
    parser.add_argument("--published", type=float, default=0.5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--formats", action="store_true")
    asked = parser.parse_args(argv)
    print(machine(), flush=True)
    print(" ".join(argv) or "(as it is)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with timed("written"):
            tables = Tables(Path(folder), asked)

        def answer() -> Any:
            return read(
                "sensors.readings",
                format="answer",
                warehouse=tables.warehouse,
                definitions=tables.definitions,
            )

        for what in ("read, cold", "read, warm", "read, warm"):
            with timed(what):
                found = answer()
        print(f"{found.table.num_rows} rows, {len(found.intervals)} intervals", flush=True)
        if asked.profile:
            profiled("profile", answer)
        if asked.formats:
            told(tables, found)
    return 0


def told(tables: Tables, found: Any) -> None:
    """Measure what is made of an answer."""
    with timed("footer"):
        format_answer_footer(found)
    with timed("csv"):
        rows_written(found.table, "csv", io.StringIO())
    with timed("json"):
        rows_written(found.table, "json", io.StringIO())
    for format in ("json", "csv", "arrow", "parquet"):
        with timed(f"page of 1000, {format}"):
            page(found, AnswerPage(format=format))
    with timed("last page, json"):
        page(found, AnswerPage(offset=found.table.num_rows - 1000))
    if len(found.intervals) > MOST_FILES:
        return
    with timed("serving, whole"):
        serving_table.refresh_serving_table(
            tables.pipeline, tables.layout, tables.view, list(found.intervals)
        )
    with timed("serving, one interval"):
        serving_table.refresh_serving_table(
            tables.pipeline, tables.layout, tables.view, [next(iter(found.intervals))]
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
