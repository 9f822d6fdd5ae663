"""What an import of history costs: python -m benchmarks.imports [--rows 10000000] [--rounds 2] [--live 3000000]

Rows of orders in Parquet files of a million come into a pipeline with a view: by `seamline import`, with no stream
beside it, from the command to the last row's epoch; less what it takes to start. Spark reads the same files and writes
them as a Delta table on the same two cores, its session up: their columns and the row as JSON, which is what the log
has of each row, and the columns alone. Then ad events are sent to a stream at 5,000 a second, without an import and
while --live rows of older ads are imported between its epochs: how old an event is when a reader first sees it counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import duckdb
import pyarrow.compute as pc

from benchmarks import ads
from benchmarks.freshness import WARM, Run, measured, new_topic
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.spine import broker
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.epoch_log import each_epoch
from seamline.local.stack import StreamStack
from seamline.model.protocol.epoch import EpochKind
from seamline.serve.read import read

FILE, RATE = 1_000_000, 5_000
DEFINITION = """
from seamline import *

orders = Pipeline(
    name="orders",
    source=KafkaSource(
        topic="TOPIC",
        schema="id STRING, shop STRING, amount DECIMAL(10,2), at TIMESTAMP",
        event_time="at",
    ),
    views=[View("hourly", keys=["shop"], window=Tumbling("1 hour"), measures={"n": count(), "total": sum("amount")})],
    batch=Batch("1 day", "2023-01-01"),
)
"""
ORDERS = """
    SELECT 'e' || i AS id, 's' || (i % 50) AS shop, ((i * 7919) % 10000 / 100)::DECIMAL(10, 2) AS amount,
        TIMESTAMPTZ '2023-01-01 00:00:00+00' + to_milliseconds(i * 3000) AS "at"
"""
ADS = """
    SELECT lpad((i % 20000)::VARCHAR, 36, '0') AS user_id, lpad((i % 5000)::VARCHAR, 36, '0') AS page_id,
        i % 1000 AS ad_id, 'banner' AS ad_type, ['view', 'click', 'purchase'][i % 3 + 1] AS event_type,
        '198.51.100.7' AS ip_address,
        TIMESTAMPTZ '2025-01-05 00:00:00+00' + to_microseconds(i * 50) AS event_time
"""
SPARK = """
import sys, time
from seamline.spark.session.session import start_spark_in_thread
source, target, raw = sys.argv[1:]
spark = start_spark_in_thread("copy", cores="local[2]", memory="1g", warehouse=target, more={}).result()
frame = spark.read.parquet(source)
frame.limit(10).write.format("delta").save(target + "/warm")
began = time.monotonic()
if raw == "raw":
    frame = frame.selectExpr("*", "CAST(to_json(struct(*)) AS BINARY) AS _value")
frame.write.format("delta").save(target + "/rows")
print(time.monotonic() - began)
spark.stop()
"""


def write_files(folder: Path, rows: int, select: str) -> None:
    """Write rows in files of a million."""
    folder.mkdir(parents=True)
    with duckdb.connect() as con:
        for first in range(0, rows, FILE):
            last = min(first + FILE, rows)
            con.execute(
                f"COPY ({select} FROM range({first}, {last}) t(i)) TO '{folder}/{first:012d}.parquet' (FORMAT parquet)"
            )


def import_alone(home: Path, connection: KafkaConnection, files: Path, rows: int) -> float:
    """Import files by the command; return the seconds from the epoch that registers them to the last one's."""
    with new_topic(connection, home.name) as topic:
        stack = StreamStack(home, DEFINITION.replace("TOPIC", topic), connection, "orders")
        command = [
            sys.executable,
            "-m",
            "seamline.cli",
            "import",
            "orders",
            "--from",
            str(files),
            "--disjoint",
        ]
        subprocess.run(
            command, env=stack.settings, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        epochs = [*each_epoch(stack.layout)]
    imported = [each for each in epochs if each.kind is EpochKind.IMPORT]
    if sum(each.rows for each in imported) != rows:
        raise SystemExit(f"{sum(each.rows for each in imported):,} rows were imported, {rows:,} were there.")
    registered = next(each for each in epochs if each.kind is EpochKind.HOLE)
    return (imported[-1].committed_at - registered.committed_at).total_seconds()


def copy_by_spark(home: Path, files: Path, *, raw: bool) -> float:
    """Let Spark read the files and write them as a Delta table; return the seconds."""
    command = [sys.executable, "-c", SPARK, str(files), str(home), "raw" if raw else "columns"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(home, ignore_errors=True)
    return float(done.stdout.split()[-1])


def measure_beside(home: Path, connection: KafkaConnection, files: Path | None) -> tuple[Run, int]:
    """Measure a live stream's freshness, with an import beside it or without; return the rows that it imported."""
    with new_topic(connection, home.name) as topic:
        stack = StreamStack(home, ads.definition(topic, epoch=1_000_000), connection, "ad_campaigns")
        stack.start()
        assert stack.driver
        os.environ.update(stack.settings)
        stack.wait("the query", (home / "streams" / "ad_campaigns" / "driver.json").exists)

        def look() -> int:
            found = read("ad_campaigns.views_by_campaign", start="2026-01-01", end="2100-01-01")
            return pc.sum(found["views"]).as_py() or 0

        def ask() -> None:
            command = [sys.executable, "-m", "seamline.cli", "stream", "start", "ad_campaigns"]
            subprocess.run(command, env=stack.settings, check=True, stdout=subprocess.DEVNULL)
            # Once the stream reads, with its workers warm, as in the run without an import.
            stack.wait("events to be read", lambda: stack.offsets_read() > RATE * WARM)
            command = [sys.executable, "-m", "seamline.cli", "import", "ad_campaigns", "--from", str(files)]
            subprocess.run(
                [*command, "--disjoint", "--no-wait"],
                env=stack.settings,
                check=True,
                stdout=subprocess.DEVNULL,
            )

        asking = threading.Thread(target=ask)
        try:
            if files:
                asking.start()
            run = measured("seamline", RATE, "0 seconds", 1, connection, topic, stack.driver.pid, look)
            return run, sum(each.rows for each in each_epoch(stack.layout) if each.kind is EpochKind.IMPORT)
        finally:
            if files:
                asking.join()
            stack.stop()


def main(argv: list[str]) -> int:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--live", type=int, default=20_000_000)
    asked = parser.parse_args(argv)
    print(machine())
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="seamline-imports-") as folder:
        home = Path(folder)
        write_files(home / "orders", asked.rows, ORDERS)
        write_files(home / "ads", asked.live, ADS)
        with broker(home) as connection:
            for number in range(asked.rounds):
                took = {
                    "seamline import": import_alone(
                        home / f"import{number}", connection, home / "orders", asked.rows
                    ),
                    "Spark, columns and JSON": copy_by_spark(home / "spark", home / "orders", raw=True),
                    "Spark, columns": copy_by_spark(home / "spark", home / "orders", raw=False),
                }
                for name, seconds in took.items():
                    figures.setdefault(name, []).append(asked.rows / seconds)
                    print(
                        f"{name}: {asked.rows:,} rows in {seconds:.1f} s, {asked.rows / seconds:,.0f} rows/s",
                        flush=True,
                    )
            for name, files in (("alone", None), ("with an import", home / "ads")):
                run, rows = measure_beside(home / name.replace(" ", "-"), connection, files)
                figures[name] = [run.p50, run.p90, run.p99, rows]
                print(
                    f"a stream at {RATE:,}/s, {name}: p50 {run.p50:.2f} s, p90 {run.p90:.2f} s, p99 {run.p99:.2f} s; "
                    f"{rows:,} rows imported beside it",
                    flush=True,
                )
    Results("imports").write(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
