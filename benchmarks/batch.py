"""An interval of many rows built: Seamline, hand-written Spark SQL, DuckDB and Polars over the same master.

    python -m benchmarks.batch [--records 12000000] [--rounds 7]

The master is written by the shipped kernel and writer, epochs of a million ad events, all in one interval. *states* is
the same question for all: views and the last of them per campaign and ten seconds. Seamline's write, commit and
certificate are told apart. Warm medians; the first of each is told as cold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import duckdb
import polars as pl
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks import ads
from benchmarks.kernels import next_task, records
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.turns import take_turns
from seamline.kernel.epoch_kernel import run
from seamline.lake.engine import states
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.lookups.lookup_tables import keep_lookup_version
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.quality.certify import certify_run
from seamline.spark.build.build import build_intervals
from seamline.spark.build.fast_path import (
    count_task_slots,
    gather_reports,
    list_touched_files,
    split_into_shares,
)
from seamline.spark.build.partial_states import Partials
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream.epoch_writer import Writer

EPOCH, CHUNK = 1_000_000, 100_000
TOPIC = "ads"


def main(argv: list[str]) -> int:
    """Write the master once, then ask everybody in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description=__doc__)
    parser.add_argument("--records", type=int, default=12_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "pipelines").mkdir()
        (home / "pipelines" / "ad_campaigns.py").write_text(ads.definition(TOPIC, epoch=EPOCH))
        pipeline = load_pipeline(home / "pipelines", "ad_campaigns")
        layout = Layout(home / "warehouse", "ad_campaigns")
        began = time.monotonic()
        views = written(pipeline, layout, options.records)
        master = Files.of(Master.open(layout).table)
        size = sum(master.actions["size_bytes"].to_pylist())
        print(
            f"{options.records:,} rows in {master.actions.num_rows} files, {size / options.records:.0f} bytes a row, "
            f"written in {time.monotonic() - began:.0f} s",
            flush=True,
        )
        spark = open_spark_session("benchmarks.batch", memory="4g")
        hour = pipeline.grid.of(ads.BEGIN)
        asked: dict[str, Callable[[], int]] = {
            "seamline": lambda: by_seamline(spark, pipeline, layout, hour),
            "spark sql": lambda: by_spark(spark, layout),
            "duckdb": lambda: by_duckdb(master.root),
            "polars": lambda: by_polars(master.root),
        }

        def require(name: str, found: int) -> None:
            if found != views:
                raise SystemExit(f"{name} counted {found:,} views, there are {views:,}.")

        taken = take_turns(asked, options.rounds, require)
        for name, each in taken.items():
            print(
                f"{name}: states cold {each.seconds[0]:.2f} s, warm {each.warm:.2f} s, {each.warm_cpu:.2f} CPU s"
            )
        warm = {name: each.warm for name, each in taken.items()}
        print(f"seamline / duckdb: {warm['seamline'] / warm['duckdb']:.2f}")
        print(f"spark sql / seamline: {warm['spark sql'] / warm['seamline']:.2f}")
        parts = [
            whole(spark, pipeline, layout, hour, f"run {number}") for number in range(options.rounds + 1)
        ][1:]
        built, certified = (median(each) for each in zip(*parts, strict=True))
        print(f"the whole build, written and committed: {built:.2f} s; certificates: {certified:.2f} s")
        Results("batch").write(
            {
                "machine": machine(),
                "cold": {k: v.seconds[0] for k, v in taken.items()},
                "warm": warm,
                "build": built,
            }
        )
    return 0


def written(pipeline: CompiledPipeline, layout: Layout, count: int) -> int:
    """Hold epochs of ad events, the last of them an edge; give how many views there are."""
    drawn = ads.pool()
    lookups = {
        join.name: layout.lookup(join.name, keep_lookup_version(join, layout))
        for join in pipeline.record.lookups
    }
    writer = Writer(layout, pipeline, 1)
    moments, views, moment = ads.clock(ads.BEGIN), 0, b""
    for first in range(0, count, EPOCH):
        batches = []
        last = min(first + EPOCH, count)
        for start in range(first, last, CHUNK):
            values = []
            for number in range(start, min(start + CHUNK, last)):
                if number % (ads.PER_SECOND // 1000) == 0:
                    moment = next(moments)
                values.append(drawn.texts[number % ads.POOL] + ads.TAIL % moment)
                views += drawn.campaigns[number % ads.POOL] is not None
            batches += records(values, TOPIC, start).to_batches()
        config = next_task(writer, lookups)
        ranges = (OffsetRange(Lane("t", 0), first, last),)
        result = run(batches, config)
        epoch = Epoch(
            config.epoch,
            1,
            datetime.now(UTC),
            pipeline.record_version,
            ranges=ranges,
            accepted=dict(result.accepted),
            edge=last == count,
            watermark=ads.BEGIN.replace(year=ads.BEGIN.year + 1) if last == count else None,
        )
        writer.commit(epoch, result, writer.current)
    return views


def by_seamline(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, hour: Interval) -> int:
    """Make the states as a build does, without writing them."""
    master = Files.of(Master.open(layout).table)
    [view] = pipeline.views
    work = split_into_shares(
        list_touched_files(pipeline, master, [hour], 10**9), [], pipeline, count_task_slots(spark)
    )
    task = Partials(pipeline, tuple(work), (hour,), 10**9, {view.id: layout.warehouse}, 10**9)
    found = gather_reports(spark, task, len(work), pipeline)
    whole = states.combine_states(view, found.states[view.id])
    return sum(whole["rows"].to_pylist())


def by_spark(spark: SparkSession, layout: Layout) -> int:
    """Ask as a person would who writes Spark SQL."""
    rows: DataFrame = spark.read.format("delta").load(str(Master.open(layout).table.root))
    found = (
        rows.where("event_type = 'view'")
        .groupBy("campaign", f.window("event_time", "10 seconds"))
        .agg(f.count(f.lit(1)).alias("views"), f.max("event_time").alias("last_view"))
    )
    return sum(row.views for row in found.collect())


def by_duckdb(root: Path) -> int:
    """Ask DuckDB, with as many threads as there are cores, about the files that deltalake finds in the table."""
    con, paths = duckdb.connect(), DeltaTable(str(root)).file_uris()
    rows = con.sql(
        "SELECT campaign, epoch_us(event_time) // 10000000, count(*) AS views, max(event_time) "
        f"FROM read_parquet({paths}) WHERE event_type = 'view' GROUP BY ALL"
    ).to_arrow_table()
    return sum(rows["views"].to_pylist())


def by_polars(root: Path) -> int:
    """Ask Polars, which goes by deltalake as well."""
    found = (
        pl.scan_delta(str(root))
        .filter(pl.col("event_type") == "view")
        .group_by("campaign", pl.col("event_time").dt.truncate("10s"))
        .agg(pl.len().alias("views"), pl.col("event_time").max().alias("last_view"))
        .collect(engine="streaming")
    )
    return int(found["views"].sum())


def whole(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, hour: Interval, name: str
) -> tuple[float, float]:
    """Build and certify; give the seconds of each."""
    began = time.monotonic()
    build_intervals(
        spark, pipeline, layout, BuildJob("ad_campaigns", name, Master.open(layout).edge, (hour,))
    )
    built = time.monotonic()
    certify_run(pipeline, layout, name)
    return built - began, time.monotonic() - built


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
