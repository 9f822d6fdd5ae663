"""An interval of many rows with event ids built, beside DuckDB's own distinct over the same files; and many keys.

    python -m benchmarks.build_ids [--records 12000000] [--rounds 5] [--id bigint|string] [--twice 0.001] [--keys N]

The master is written by the shipped kernel and writer, epochs of a million events in one interval, each with an id;
``--twice`` of them repeat an earlier id. DuckDB, with all cores, answers the same question with DISTINCT ON by the
order of reading (*ordered*), and with any row of an id (*any*); *ids only* counts distinct ids and does nothing else.
Every way is asked once a round, in turn; warm medians. The bytes that tasks read of files are told for several numbers
of tasks, which this process does one after the other (rchar); the first has footers among them.
With ``--keys`` an interval of so many keys is built too, and the driver's peak memory is told, Python's and the JVM's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import duckdb
import psutil
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks import ads
from benchmarks.kernels import next_task, records
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.turns import take_turns
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count, max
from seamline.kernel.epoch_kernel import run
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.generations import Generations
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.plan.batch import work_shares
from seamline.spark.build.build import build_intervals
from seamline.spark.build.fast_path import list_touched_files, split_into_shares
from seamline.spark.build.partial_states import Partials
from seamline.spark.build.repeated_ids import (
    NO_PLACES,
    ComparedRows,
    HashedIds,
    RepeatingRows,
    find_hashes_twice,
    gather_places,
)
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream.epoch_writer import Writer

EPOCH, CHUNK, TOPIC = 1_000_000, 100_000, "ads"
PARTS = ("hashes", "verdicts", "states")
ORDER = "ORDER BY _epoch, _partition, _offset, _topic"
HEAP = "1g"
"""Of the JVM that builds many keys."""


def pipeline_of(id: str, keys: list[str]) -> CompiledPipeline:
    """Declare events with an id, and views of them by campaign and ten seconds, or by other keys and the hour."""
    window = Tumbling("10 seconds") if keys == ["campaign"] else Tumbling("1 hour")
    return compile_pipeline(
        Pipeline(
            name="ids",
            source=KafkaSource(
                topic=TOPIC,
                schema=f"id {id.upper()} NOT NULL, user BIGINT, campaign INT, event_time TIMESTAMP",
                event_time="event_time",
                event_id=["id"],
            ),
            views=[
                View("views", keys=keys, window=window, measures={"n": count(), "last": max("event_time")})
            ],
            batch=Batch("1 hour", f"{ads.BEGIN:%Y-%m-%d}"),
        )
    )


def values(first: int, last: int, id: str, twice: float, users: int) -> Iterator[bytes]:
    """Make events; each of so many repeats the id of the event 500 before it."""
    every = round(1 / twice) if twice else 0
    for number in range(first, last):
        named = number - 500 if every and number % every == every - 1 and number > 500 else number
        shown = f'"{named * 0x9E3779B97F4A7C15 % 2**64:016x}"' if id == "string" else str(named)
        seconds, millis = divmod(number * 3_500 // users if users > EPOCH else number // 20, 1000)
        yield (
            b'{"id":%s,"user":%d,"campaign":%d,"event_time":"2026-01-05T00:%02d:%02d.%03dZ"}'
            % (shown.encode(), number * 7919 % users, number % 100, seconds // 60 % 60, seconds % 60, millis)
        )


def written(
    pipeline: CompiledPipeline, layout: Layout, count: int, id: str, twice: float, users: int
) -> None:
    """Hold epochs of events, the last of them an edge."""
    writer = Writer(layout, pipeline, 1)
    for first in range(0, count, EPOCH):
        last = min(first + EPOCH, count)
        batches = []
        for start in range(first, last, CHUNK):
            some = [*values(start, min(start + CHUNK, last), id, twice, users)]
            batches += records(some, TOPIC, start).to_batches()
        config = replace(next_task(writer), views=frozenset())
        result = run(batches, config)
        epoch = Epoch(
            config.epoch,
            1,
            datetime.now(UTC),
            pipeline.record_version,
            ranges=(OffsetRange(Lane("t", 0), first, last),),
            accepted=dict(result.accepted),
            edge=last == count,
            watermark=ads.BEGIN.replace(year=ads.BEGIN.year + 1) if last == count else None,
        )
        writer.commit(epoch, result, writer.current)


def build(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, hour: Interval) -> tuple[int, int]:
    """Build, write and commit; give the rows counted and the duplicates."""
    name = f"run {time.monotonic_ns()}"
    [row] = build_intervals(spark, pipeline, layout, BuildJob("ids", name, Master.open(layout).edge, (hour,)))
    return row.state_rows, row.duplicates


def by_duckdb(paths: list[str], order: str) -> tuple[int, int]:
    """Ask DuckDB for the same: of each id one row."""
    found = (
        duckdb.connect()
        .sql(
            "SELECT campaign, epoch_us(event_time) // 10000000, count(*) AS n, max(event_time) FROM "
            f"(SELECT DISTINCT ON (id) campaign, event_time FROM read_parquet({paths}) {order}) GROUP BY ALL"
        )
        .to_arrow_table()
    )
    return sum(found["n"].to_pylist()), 0


def ids_only(paths: list[str]) -> tuple[int, int]:
    """Ask DuckDB how many ids there are."""
    [(found,)] = duckdb.connect().sql(f"SELECT count(DISTINCT id) FROM read_parquet({paths})").fetchall()
    return found, 0


def bytes_read(pipeline: CompiledPipeline, master: Files, hour: Interval, tasks: int) -> list[int]:
    """Do the work of so many tasks in this process; give the bytes that hashes, verdicts and states read of files."""
    own = list_touched_files(pipeline, master, [hour], 10**9)
    with patch.object(work_shares, "LEAST", 1):
        shares = tuple(split_into_shares(own, [], pipeline, tasks))
    given = (pipeline, shares, (hour,), 10**9)
    marks = [asked_for()]
    chunks = [chunk for number in range(len(shares)) for _, chunk in HashedIds(*given, 1)(number)]
    marks.append(asked_for())
    twice = b"".join(payload for _, payload in find_hashes_twice(iter(chunks)))
    places = NO_PLACES
    if twice:
        compared = ComparedRows(*given, 1, twice)
        rows = [chunk for number in range(len(shares)) for _, chunk in compared(number)]
        places = gather_places(RepeatingRows(*given, Path(), 10**9)(iter(rows)))
    marks.append(asked_for())
    folders = {view.id: Path() for view in pipeline.views}
    for number in range(len(shares)):
        list(Partials(*given, folders, 10**9, places)(number))
    marks.append(asked_for())
    return [after - before for before, after in pairwise(marks)]


def asked_for() -> int:
    """Return how many bytes this process has asked the kernel for."""
    return psutil.Process().io_counters().read_chars


def peak_mb(pid: int) -> int:
    """Return the most memory that a process has had, in MB."""
    [line] = [
        each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM")
    ]
    return int(line.split()[1]) >> 10


def compared(options: argparse.Namespace, home: Path, spark: SparkSession) -> dict[str, float]:
    """Time all ways in turn."""
    pipeline, layout = pipeline_of(options.id, ["campaign"]), Layout(home / "warehouse", "ids")
    written(pipeline, layout, options.records, options.id, options.twice, EPOCH)
    master = Files.of(Master.open(layout).table)
    paths, hour = DeltaTable(str(master.root)).file_uris(), pipeline.grid.of(ads.BEGIN)
    print(
        f"{options.records:,} rows, {sum(master.actions['size_bytes'].to_pylist()) / 1e6:,.0f} MB", flush=True
    )
    for tasks in (2, 2, 6):
        parts = bytes_read(pipeline, master, hour, tasks)
        told = ", ".join(f"{name} {n / 1e6:.1f}" for name, n in zip(PARTS, parts, strict=True))
        print(f"MB read by {tasks} tasks: {sum(parts) / 1e6:.1f} ({told})", flush=True)
    asked: dict[str, Callable[[], tuple[int, int]]] = {
        "seamline": lambda: build(spark, pipeline, layout, hour),
        "duckdb, ordered": lambda: by_duckdb(paths, ORDER),
        "duckdb, any": lambda: by_duckdb(paths, ""),
        "ids only": lambda: ids_only(paths),
    }
    found = set[int]()

    def require(name: str, counted: tuple[int, int]) -> None:
        number, twice = counted
        found.add(number)
        if name == "seamline" and number + twice != options.records:
            raise SystemExit(f"{number:,} rows and {twice:,} duplicates of {options.records:,}.")
        if len(found) > 1:
            raise SystemExit(f"They counted {found}.")

    taken = take_turns(asked, options.rounds, require)
    for name, each in taken.items():
        print(f"{name}: warm {each.warm:.2f} s, {each.warm_cpu:.2f} CPU s", flush=True)
    warm = {name: each.warm for name, each in taken.items()}
    for name in ("duckdb, ordered", "duckdb, any"):
        print(f"seamline / {name}: {warm['seamline'] / warm[name]:.2f}")
    return warm


def many_keys(options: argparse.Namespace, home: Path) -> dict[str, float]:
    """Build an interval of so many keys in a Spark of its own; tell the peaks of its driver."""
    pipeline, layout = pipeline_of(options.id, ["user"]), Layout(home / "keys", "ids")
    written(pipeline, layout, options.keys, options.id, 0.0, options.keys)
    spark = open_spark_session("benchmarks.build_ids", memory=HEAP)
    before = peak_mb(psutil.Process().pid)
    Path("/proc/self/clear_refs").write_text("5")
    began = time.monotonic()
    rows, _ = build(spark, pipeline, layout, pipeline.grid.of(ads.BEGIN))
    seconds = time.monotonic() - began
    [jvm] = [each.pid for each in psutil.Process().children() if each.name() == "java"]
    python, java = peak_mb(psutil.Process().pid), peak_mb(jvm)
    files = Files.of(Generations.ensure(layout, pipeline.views[0]).table).actions.num_rows
    print(
        f"{options.keys:,} keys in one interval: {rows:,} rows in {seconds:.1f} s, {files} files; "
        f"driver's peak {python + java:,} MB (Python {python:,}, JVM {java:,}; Python {before:,} before)",
        flush=True,
    )
    return {"seconds": seconds, "python_mb": python, "jvm_mb": java}


def main(argv: list[str]) -> int:
    """Write masters once, then ask everybody in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build_ids", description=__doc__)
    parser.add_argument("--records", type=int, default=12_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--id", choices=["bigint", "string"], default="bigint")
    parser.add_argument("--twice", type=float, default=0.001)
    parser.add_argument("--keys", type=int, default=0)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    figures: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        if options.keys:
            figures["keys"] = many_keys(options, Path(folder))
        if options.records:
            spark = open_spark_session("benchmarks.build_ids", memory="4g")
            figures["warm"] = compared(options, Path(folder), spark)
    Results("build_ids").write(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
