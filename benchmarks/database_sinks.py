"""Rows sent to PostgreSQL and to Valkey, and read while rows come: python -m benchmarks.database_sinks [--rows N]

The rows are those of a serving table, in batches and transactions as the runner of sinks makes them. Beside them what a
plain client does with the same, in the same run: COPY of the same bytes into a table without keys, and redis-py's
pipeline of SET. Point reads are by a client of their own, of keys at random, while 1,000 rows are written each 100 ms.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import redis
from tests.services.run import Run

from benchmarks.machine import machine
from seamline import (
    Batch,
    KafkaSource,
    Pipeline,
    PostgresSink,
    RedisSink,
    Tumbling,
    View,
    avg,
    count,
    max,
    sum,
)
from seamline.lake.read.serving_table import serving_schema
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.postgres.copied_rows import copy_texts
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.redis.target import RedisTarget
from seamline.sinks.sending import MOST_BATCHES
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch, Target

BATCH, KEYS, READS = 5_000, 10_000, 20_000
START = np.datetime64("2026-11-01T00", "us")
SINKS = PostgresSink("by_shop", table="by_shop"), RedisSink("by_shop")
SALES = Pipeline(
    name="sales",
    source=KafkaSource("sales", "shop STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL", "sold_at"),
    views=[
        View(
            "by_shop",
            keys=["shop"],
            window=Tumbling("1 hour"),
            measures={"n": count(), "total": sum("amount"), "mean": avg("amount"), "latest": max("sold_at")},
        )
    ],
    batch=Batch("1 day", "2026-01-01"),
)


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    view = compile_pipeline(SALES).views[0]
    table = make_rows(view, rows)
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        servers = Run(Path(folder), os.getpid())
        try:
            measure_postgres(view, table, servers)
            measure_valkey(view, table, servers)
        finally:
            servers.end()


def make_rows(view: CompiledView, rows: int) -> pa.Table:
    """Make up rows of a serving table: each hour has one of each shop."""
    at = np.arange(rows)
    start = START + (at // KEYS).astype("timedelta64[h]")
    days = pa.array(start.astype("datetime64[D]")).cast(pa.string())
    known = {
        "shop": pa.array([f"shop {each:05d}" for each in range(KEYS)]).take(pa.array(at % KEYS)),
        "window_start": pa.array(start).cast(pa.timestamp("us", "UTC")),
        "window_end": pa.array(start + np.timedelta64(1, "h")).cast(pa.timestamp("us", "UTC")),
        "mean": pa.array(at / 7),
        "latest": pa.array(start).cast(pa.timestamp("us", "UTC")),
        "certified": pa.repeat(True, rows),
        "complete": pa.repeat(True, rows),
        "phase": pa.repeat("complete", rows),
        "interval": pc.binary_join_element_wise(days, "T00:00:00Z", ""),
        "total__beyond": pa.nulls(rows),
    }
    schema = serving_schema(view)
    return pa.table([known.get(each.name, pa.array(at)).cast(each.type) for each in schema], schema=schema)


def timed(what: str, rows: int, do: Callable[[], object]) -> float:
    """Do something with rows, and print how many a second that was."""
    began, cpu = time.perf_counter(), time.process_time()
    do()
    rate = rows / (time.perf_counter() - began)
    print(
        f"{what}: {rate:,.0f} rows/s, {(time.process_time() - cpu) / rows * 1e6:.1f} CPU s per million here"
    )
    return rate


def cut(table: pa.Table) -> Iterator[ChangeBatch]:
    """Cut rows into batches, as the runner does."""
    gone = table.select(["shop", "window_start", "window_end"]).slice(0, 0)
    for at in range(0, table.num_rows, BATCH):
        yield ChangeBatch(table.slice(at, BATCH), gone, None)


def send(target: Target, table: pa.Table) -> None:
    """Send rows to a target that has none, in transactions as the runner makes them."""
    target.take_over()
    some = list(cut(table))
    for at in range(0, len(some), MOST_BATCHES):
        target.write(some[at : at + MOST_BATCHES], SinkPosition("f", -1, 1, at + 1))
    target.write([], SinkPosition("f", 1))


def measure_postgres(view: CompiledView, table: pa.Table, servers: Run) -> None:
    """Send all rows, a tenth of them again with other numbers, and all by a plain COPY."""
    found, rows = dict(servers.find("postgres")), table.num_rows
    login = {"user": found["user"], "password": found["password"]}
    connection = ServerConnection(
        "db", "postgres", found["host"], found["port"], *login.values(), schema="postgres"
    )
    with closing(PostgresTarget(SINKS[0], view, connection)) as target:
        first = timed("PostgreSQL, first send", rows, lambda: send(target, table))
        tenth = table.slice(0, rows // 10)
        again = SinkPosition("f", 2)
        timed("PostgreSQL, upserts", tenth.num_rows, lambda: target.write(cut(tenth), again))
    names = [each for each in table.column_names if "__" not in each and each != "interval"]
    texts = list(copy_texts(table.select(names)))
    columns = ", ".join(names)
    with psycopg.connect(host=found["host"], port=found["port"], dbname="postgres", **login) as session:
        session.execute(f"CREATE TABLE plain AS SELECT {columns} FROM by_shop LIMIT 0")

        def copy() -> None:
            with session.cursor().copy(f"COPY plain ({columns}) FROM STDIN (FORMAT csv)") as into:
                for text in texts:
                    into.write(text)

        plain = timed("PostgreSQL, plain COPY without keys of ready texts", rows, copy)
    print(f"PostgreSQL: {first / plain:.2f} of a plain COPY")


def measure_valkey(view: CompiledView, table: pa.Table, servers: Run) -> None:
    """Send all rows, read single ones while others come, and set the same by a plain client."""
    found, rows = dict(servers.find("valkey")), table.num_rows
    connection = ServerConnection(
        "cache", "redis", found["host"], found["port"], password=found["password"], schema="1"
    )
    plain = redis.Redis(found["host"], found["port"], db=1, password=found["password"])
    with closing(plain), closing(RedisTarget(SINKS[1], view, connection)) as target:
        first = timed("Valkey, first send", rows, lambda: send(target, table))
        keys = [each for each in plain.scan_iter(count=10_000) if each.endswith(b"Z")]
        values = [value for at in range(0, rows, 10_000) for value in plain.mget(keys[at : at + 10_000])]
        print_reads("Valkey, point reads", plain, keys)
        over = threading.Event()
        writer = threading.Thread(target=write_on, args=(target, table.slice(0, 1_000), over))
        writer.start()
        print_reads("Valkey, point reads beside 1,000 rows each 100 ms", plain, keys)
        over.set()
        writer.join()
        plain.flushdb()
        rate = timed("Valkey, plain pipeline of SET", rows, lambda: set_plainly(plain, keys, values))
    print(f"Valkey: {first / rate:.2f} of a plain pipeline of SET with ready values")


def write_on(target: Target, table: pa.Table, over: threading.Event) -> None:
    """Write rows again and again."""
    version = 2
    while not over.wait(0.1):
        target.write(cut(table), SinkPosition("f", version))
        version += 1


def print_reads(what: str, client: redis.Redis, keys: list[bytes]) -> None:
    """Read keys at random, and print how long that took."""
    took = []
    for key in random.Random(1).choices(keys, k=READS):
        began = time.perf_counter()
        client.get(key)
        took.append(time.perf_counter() - began)
    p50, p99 = np.percentile(took, [50, 99]) * 1000
    print(f"{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


def set_plainly(client: redis.Redis, keys: list[bytes], values: list[bytes]) -> None:
    """Set keys as anybody would."""
    for at in range(0, len(keys), BATCH):
        with client.pipeline(transaction=False) as pipeline:
            for key, value in zip(keys[at : at + BATCH], values[at : at + BATCH], strict=True):
                pipeline.set(key, value)
            pipeline.execute()


if __name__ == "__main__":
    main()
