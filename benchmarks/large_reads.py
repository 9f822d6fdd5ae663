"""What a large answer costs, whole and as a stream, beside plain DuckDB over the same files.

    python -m benchmarks.large_reads [--rows 3000000] [--stream 100000,1000000,10000000] [--days 1] [--profile]

Tables of a pipeline are written without its stream: a generation of so many keys, published, and above its cut a few
epochs of slices for some of them. DuckDB reads and groups the same files by key and day, in the same process and turn.
Each stream is read in a process of its own, which says its largest resident memory.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.machine import machine
from benchmarks.results import Results
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT, generations_schema, partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.catalog import load_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.time.intervals import Interval
from seamline.serve.read import read
from seamline.serve.streamed import encode_answer_stream, stream_answer

BEGIN, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
EPOCHS, PIECE, ROUNDS = 5, 1_000_000, 3
"""Epochs above the cut, rows of a file of a generation, and how often each reader is timed."""
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, avg, count, max, sum

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="sales",
        schema="customer STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL",
        event_time="sold_at",
    ),
    views=[
        View(
            "sales",
            keys=["customer"],
            window=Tumbling("1 day"),
            measures={"orders": count(), "total": sum("amount"), "largest": max("amount")},
        )
    ],
    batch=Batch(interval="1 day", start="2026-01-01"),
)
"""


class Tables:
    """A pipeline whose view has so many rows, even over some days."""

    def __init__(self, home: Path, rows: int, days: int) -> None:
        self.home, self.rows, self.days = home, rows, days
        self.definitions, self.warehouse = home / "pipelines", home / "warehouse"
        self.layout = Layout(self.warehouse, "shop")

    def make(self) -> Tables:
        """Write the tables, unless they are there."""
        if self.definitions.exists():
            return self
        self.definitions.mkdir(parents=True)
        (self.definitions / "shop.py").write_text(DEFINITION)
        self.pipeline = load_pipeline(self.definitions, "shop")
        self.view = self.pipeline.views[0]
        master, ledger = Master.ensure(self.layout, self.pipeline), Ledger.ensure(self.layout)
        slices, manifest = Slices.ensure(self.layout, self.view), ManifestTable.ensure(self.layout)
        manifest.read()
        manifest.commit([Statement(act, self.view.id, epoch=0) for act in (Act.BIRTH, Act.FLIP)])
        for number in range(EPOCHS + 1):
            if number:
                slices.append(
                    self.states(0, self.rows // 100, self.days - 1), from_epoch=number, to_epoch=number
                )
            row = Epoch(
                number, 0, BEGIN, self.pipeline.record_version, edge=True, frontiers={self.view.id: number}
            )
            master.commit(row, [])
            ledger.append([row])
        self.publish(manifest)
        return self

    def states(self, first: int, last: int, day: int) -> pa.Table:
        """Make the states of some keys on a day."""
        numbers = np.random.default_rng(0).permutation(np.arange(first, last))
        moment = pa.scalar(BEGIN + day * DAY, INSTANT)
        known: dict[str, Any] = {
            "customer": pa.array(np.char.add("customer ", numbers.astype(str))),
            "pane": pa.repeat(moment, len(numbers)),
        }
        ones = pa.array(numbers % 97 + 1)
        schema = partial_schema(self.view)
        return pa.table([known.get(name, ones) for name in schema.names], names=schema.names).cast(schema)

    def publish(self, manifest: ManifestTable) -> None:
        """Write a generation of every day, and name it."""
        table = Table.ensure(
            self.layout.generations(self.view), generations_schema(self.view), partition_by=["interval"]
        )
        made, said, each = [], [], self.rows // self.days
        for day in range(self.days):
            interval = Interval(BEGIN + day * DAY, BEGIN + (day + 1) * DAY)
            for first in range(0, each, PIECE):
                own = self.states(first, min(first + PIECE, each), day)
                own = own.append_column("generation", pa.repeat(pa.scalar("g"), own.num_rows))
                made.append(
                    data_files.write_data_file(
                        own,
                        table.root,
                        f"g/{day}-{first}.parquet",
                        stats=["generation", "pane"],
                        partition={"interval": interval.id},
                        group=100_000,
                    )
                )
            facts = {"interval": interval.id, "generation": "g", "rows": each, "at": interval.end}
            said.append(Statement(Act.PUBLISH, self.view.id, epoch=0, certified=True, **facts))
        table.append(made)
        manifest.read()
        manifest.commit(said)

    def whole(self) -> pa.Table:
        """Read the whole answer."""
        return read("shop.sales", warehouse=self.warehouse, definitions=self.definitions)

    def plain(self) -> pa.Table:
        """Read and group the same files by DuckDB alone."""
        view = load_pipeline(self.definitions, "shop").views[0]
        places = (self.layout.generations(view), self.layout.slices(view))
        paths = [path for place in places for path in Files.of(Table.open(place)).paths]
        with duckdb.connect() as con:
            return con.sql(
                "SELECT customer, pane, sum(orders__n)::BIGINT AS orders, sum(total__sum) AS total, "
                "max(largest__value) AS largest, sum(rows)::BIGINT AS n "
                f"FROM {read_parquet_sql(paths, uneven=True)} GROUP BY ALL ORDER BY pane, customer"
            ).to_arrow_table()


def cost(make: Callable[[], Any]) -> dict[str, float]:
    """Do something, and say how long it took by the clock and in CPU seconds."""
    at, cpu = time.perf_counter(), time.process_time()
    make()
    return {"wall": time.perf_counter() - at, "cpu": time.process_time() - cpu}


def compared(tables: Tables) -> dict[str, Any]:
    """Time the whole answer and plain DuckDB in turns; the best of each."""
    rounds = [(cost(tables.plain), cost(tables.whole)) for _ in range(ROUNDS)]
    found = {
        name: {kind: min(turn[at][kind] for turn in rounds) for kind in ("wall", "cpu")}
        for at, name in enumerate(("duckdb", "whole"))
    }
    for name, each in found.items():
        print(f"{tables.rows:>10,} rows {name:10} {each['wall']:6.2f} s {each['cpu']:6.2f} CPU s", flush=True)
    ratio = min(turn[1]["cpu"] / turn[0]["cpu"] for turn in rounds)
    print(f"whole to DuckDB, CPU: {ratio:.2f}")
    return {**found, "ratio": ratio}


def streamed(tables: Tables, format: str) -> dict[str, Any]:
    """Stream all rows in this process, as batches or encoded: the most memory beside what it had before."""
    sizes = []

    def stream() -> Iterator[Any]:
        found = stream_answer("shop.sales", warehouse=tables.warehouse, definitions=tables.definitions)
        yield from found.batches() if format == "batches" else encode_answer_stream(found, format)
        sizes.append(found.rows)

    def drain() -> None:
        for _ in stream():
            pass

    # Engines are loaded, and their pools made, by a small answer.
    read("shop.sales", "customer = 'customer 1'", warehouse=tables.warehouse, definitions=tables.definitions)
    before = peak()
    return {**cost(drain), "rows": sizes[0], "before": before, "peak": peak()}


def peak() -> int:
    """Return the largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def streams(place: Path, sizes: list[int], days: int) -> dict[str, Any]:
    """Stream answers of some sizes, each in a process of its own."""
    found: dict[str, Any] = {}
    for rows in sizes:
        Tables(place / f"{rows}-{days}", rows, days).make()
        for format in ("batches", "parquet"):
            command = [
                sys.executable,
                "-m",
                "benchmarks.large_reads",
                "--child",
                format,
                "--keep",
                str(place),
            ]
            command += ["--rows", str(rows), "--days", str(days)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            each = found[f"{rows} {format}"] = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{rows:>10,} rows {format:10} {each['wall']:6.2f} s {each['cpu']:6.2f} CPU s "
                f"peak {each['peak']:>5} MB, {each['before']} before",
                flush=True,
            )
    return found


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Make the tables there, or use those that are there.")
    parser.add_argument("--stream", default="100000,1000000,10000000")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.child:
        tables = Tables(asked.keep / f"{asked.rows}-{asked.days}", asked.rows, asked.days)
        print(json.dumps(streamed(tables, asked.child)))
        return 0
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as made:
        tables = Tables(
            (asked.keep or Path(made)) / f"{asked.rows}-{asked.days}", asked.rows, asked.days
        ).make()
        figures = {"whole": compared(tables)}
        if asked.profile:
            with cProfile.Profile() as found:
                tables.whole()
            pstats.Stats(found).sort_stats("cumulative").print_stats(45)
        sizes = [int(size) for size in asked.stream.split(",") if size]
        figures["streams"] = streams(asked.keep or Path(made), sizes, asked.days)
    Results("large_reads").write(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
