"""What sinks cost by the whole way, from a serving table to a topic, a table of PostgreSQL, keys of Valkey, and files.

    python -m benchmarks.sinks [--rows 1000000] [--only kafka,postgres,redis,parquet,json] [--trials 60] [--no-peers]
                               [--at-once 100]

*Rebuild*: `seamline sinks run --once` sends a serving table to a target that has nothing. Rows a second are those of
the whole process, its start included; CPU and the largest resident memory are the process's own, as the system counts
them. Beside each, in the same run, what a plain client does with the same values, ready as bytes: a producer of
confluent-kafka without transactions, COPY into a table without keys, and a pipeline of SETs; the start of a process is
not in theirs. With Valkey a reader gets single keys meanwhile (`benchmarks.point_reads`).

*Audit* of files: `seamline sinks audit` reads them all back. Files have neither a plain client nor a freshness: they
wait for more, as `roll_age=` says.

*Added freshness*: a row changes, and the serving table is refreshed; the time is from that commit until somebody who
looks every few milliseconds sees the row in the target. The row's interval has 20,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from confluent_kafka import Consumer, Producer
from tests.services.run import Run
from tests.unit.shop import DEFINITION, START, Sale, Shop, sales_pipeline

from benchmarks.database_sinks import set_plainly
from benchmarks.machine import machine, names, percentile
from benchmarks.point_reads import DATABASE, open_client, point_reads, prefer
from benchmarks.results import Results
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.read import serving_table
from seamline.lake.storage.arrow_types import partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.sinks.kafka_rows import encode_rows

ROOT = Path(__file__).resolve().parents[1]
FILES = ("parquet", "json")
KINDS = ("kafka", "postgres", "redis", *FILES)
SINKS = {
    "kafka": 'KafkaSink("sales", topic="{name}", name="out")',
    "postgres": 'PostgresSink("sales", table="{name}", name="out")',
    "redis": 'RedisSink("sales", name="out", at_once={at_once})',
    **{each: f'FileSink("sales", path="{{path}}", format="{each}", name="out")' for each in FILES},
}
KEYS, AT_ONCE = 10_000, 960_000
"""Customers of each hour, and rows of one epoch: whole days."""
PROBE, SMALL = "probe", 20_000


@dataclass(frozen=True)
class Place:
    """One kind of target, on a server of this run."""

    kind: str
    address: dict[str, Any]

    @property
    def connection(self) -> dict[str, Any]:
        """The Airflow connection."""
        if self.kind in FILES:
            return {}
        if self.kind == "kafka":
            return {"conn_type": "kafka", "extra": {"bootstrap.servers": self.address["brokers"]}}
        if self.kind == "redis":
            return {"conn_type": "redis", "extra": {"db": DATABASE}, **self.address}
        shared = {key: self.address[key] for key in ("host", "port", "password")}
        return {"conn_type": "postgres", "login": self.address["user"], "schema": "postgres", **shared}

    def open_postgres(self) -> psycopg.Connection[Any]:
        """Open a session of PostgreSQL."""
        return psycopg.connect(**self.address, dbname="postgres", autocommit=True)


def make_shop(folder: Path, kind: str, name: str, rows: int, at_once: int = 100) -> Shop:
    """Make a serving table of so many rows, each hour with one of each customer."""
    sink = SINKS[kind].format(name=name, at_once=at_once, path=folder / "files")
    text = DEFINITION.replace("    batch=", f"    sinks=[{sink}],\n    batch=")
    text = text.replace("import Batch,", f"import Batch, {sink.partition('(')[0]},")
    (folder / "definitions").mkdir(parents=True)
    (folder / "definitions" / "shop.py").write_text(text)
    shop = Shop(folder / "w", sales_pipeline(text=text))
    schema = partial_schema(shop.view)
    customers = pa.array([f"customer {each:05d}" for each in range(KEYS)])
    for first in range(0, rows, AT_ONCE):
        at = np.arange(first, min(first + AT_ONCE, rows))
        hours = at // KEYS
        known = {
            "customer": customers.take(pa.array(at % KEYS)),
            "pane": pa.array(
                np.datetime64(START.replace(tzinfo=None), "us") + hours.astype("timedelta64[h]")
            ),
        }
        made = [known.get(field.name, pa.array(at)).cast(field.type) for field in schema]
        days = range(int(hours[0]) // 24, int(hours[-1]) // 24 + 1)
        shop.partials = lambda _, made=made: pa.table(made, schema=schema)  # type: ignore[method-assign, misc]
        shop.epoch([Sale(24 * 60 * day) for day in days])
        refresh(shop)
    del shop.partials  # type: ignore[method-assign]
    return shop


def refresh(shop: Shop) -> None:
    """Bring the serving table up to date."""
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def start(folder: Path, place: Place, *words: str) -> subprocess.Popen[bytes]:
    """Start a command about the sinks."""
    env = {
        **os.environ,
        "SEAMLINE_PIPELINES": str(folder / "definitions"),
        "SEAMLINE_WAREHOUSE": str(folder / "w"),
        "SEAMLINE_HOME": str(folder / "home"),
        f"AIRFLOW_CONN_{place.kind.upper()}_DEFAULT": json.dumps(place.connection),
        # The packages of this checkout.
        "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)]),
    }
    command = [sys.executable, "-m", "seamline.cli", "sinks", words[0], "shop", *words[1:]]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def rebuild(folder: Path, place: Place, rows: int) -> dict[str, Any]:
    """Send all rows to a target that has none."""
    reading = point_reads(place.address, "{shop.out}:*") if place.kind == "redis" else nullcontext([])
    with reading as took:
        figures = command(folder, place, rows, "run", "--once")
    return figures | {f"get_p{share}_ms": percentile(took, share / 100) for share in (50, 99) if took}


def command(folder: Path, place: Place, rows: int, *words: str) -> dict[str, Any]:
    """Run a command about the sinks to its end."""
    began = time.perf_counter()
    most, pid = 0.0, start(folder, place, *words).pid
    while not (ended := os.wait4(pid, os.WNOHANG))[0]:
        most = read_peak(pid) or most
        time.sleep(0.02)
    _, status, used = ended
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit((folder / "log").read_text())
    return {
        "rows_a_second": rows / seconds,
        "cpu_s_per_million": (used.ru_utime + used.ru_stime) / rows * 1e6,
        "most_mb": most,
    }


def read_peak(pid: int) -> float:
    """Return the most memory that a process has had, in MB; what ``wait4`` says is also of who forked it."""
    try:
        told = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in told.splitlines() if line.startswith("VmHWM")) / 1024


def send_plainly(place: Place, shop: Shop, name: str) -> dict[str, Any]:
    """Send the same values by a plain client."""
    rows = Table.open(shop.layout.serving(shop.view)).read()
    places = encode_rows(rows.select(["customer", "window_start", "window_end"]))
    keys, values = [each.encode() for each in places], [each.encode() for each in encode_rows(rows)]
    send = {"kafka": produce, "postgres": copy, "redis": set_all}[place.kind](place, name, keys, values)
    began, cpu = time.perf_counter(), time.process_time()
    send()
    seconds = time.perf_counter() - began
    return {
        "peer_rows_a_second": len(keys) / seconds,
        "peer_cpu_s_per_million": (time.process_time() - cpu) / len(keys) * 1e6,
    }


def produce(place: Place, name: str, keys: list[bytes], values: list[bytes]) -> Callable[[], None]:
    """Produce to a topic of its own."""
    with TopicAdmin(KafkaConnection(**place.address)) as admin:
        admin.create_topic(f"{name}.plain", len(admin.partitions(name)))
    producer = Producer(
        {"bootstrap.servers": place.address["brokers"], "linger.ms": 5, "compression.type": "lz4"}
    )

    def send() -> None:
        for key, value in zip(keys, values, strict=True):
            while True:
                try:
                    producer.produce(f"{name}.plain", value, key)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        producer.flush()

    return send


def copy(place: Place, name: str, keys: list[bytes], values: list[bytes]) -> Callable[[], None]:
    """Copy into a table without keys: the key as a text, the row as a text."""
    escaped = [f"{key}\t{value}\n" for key, value in zip(*map(decode, (keys, values)), strict=True)]
    texts = ["".join(escaped[at : at + 5_000]).encode() for at in range(0, len(escaped), 5_000)]

    def send() -> None:
        with place.open_postgres() as session:
            session.execute(f"CREATE TABLE {name}_plain (key text, value text)")
            with session.cursor().copy(f"COPY {name}_plain FROM STDIN") as into:
                for text in texts:
                    into.write(text)

    return send


def decode(texts: list[bytes]) -> list[str]:
    """Write texts as COPY reads them."""
    return [each.decode().replace("\\", "\\\\") for each in texts]


def set_all(place: Place, name: str, keys: list[bytes], values: list[bytes]) -> Callable[[], None]:
    """Set keys in pipelines."""

    def send() -> None:
        with open_client(place.address) as client:
            client.flushdb()
            set_plainly(client, keys, values)
            client.flushdb()

    return send


@contextmanager
def watching(place: Place, name: str) -> Iterator[Callable[[], int]]:
    """Return what looks how many orders the probe has in the target."""
    if place.kind == "redis":
        with open_client(place.address) as client:
            key = f"{{shop.out}}:{PROBE}:2013-01-01T00:00:00Z"
            yield lambda: json.loads(client.get(key) or '{"orders": 0}')["orders"]
    elif place.kind == "postgres":
        with place.open_postgres() as session:
            there = f"SELECT 1 FROM pg_class WHERE relname = '{name}'"
            query = f"SELECT orders FROM {name} WHERE customer = '{PROBE}'"
            yield (
                lambda: (
                    sum(number for (number,) in session.execute(query).fetchall())
                    if session.execute(there).fetchone()
                    else 0
                )
            )
    else:
        consumer = Consumer(
            {
                "bootstrap.servers": place.address["brokers"],
                "group.id": name,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe([name])
        held = [0]

        def look() -> int:
            for message in consumer.consume(1000, 0.002):
                key, value = message.key(), message.value()
                if message.error() is None and value and PROBE.encode() in (key or b""):
                    held[0] = json.loads(value)["orders"]
            return held[0]

        with closing(consumer):
            yield look


def measure_freshness(folder: Path, place: Place, trials: int) -> dict[str, Any]:
    """Change a row again and again while the sinks run."""
    name = "probed"
    shop = make_shop(folder, place.kind, name, SMALL)
    if place.kind == "redis":
        with open_client(place.address) as client:
            client.flushdb()
    delays, dice = [], random.Random(1)
    log = Path(str(shop.layout.serving(shop.view))) / "_delta_log"
    process = start(folder, place, "run")
    try:
        with watching(place, name) as look:
            for trial in range(1, trials + 11):
                shop.epoch([Sale(0, PROBE)])
                refresh(shop)
                committed = max(log.glob("*.json")).stat().st_mtime
                until = time.monotonic() + 60
                while look() < trial:
                    time.sleep(0.002)
                    if time.monotonic() > until:
                        raise SystemExit((folder / "log").read_text())
                delays.append(time.time() - committed)
                time.sleep(dice.random() / 5)
    finally:
        process.terminate()
        process.wait(60)
    # The first ones wait for the process to start.
    return {f"added_p{share}_ms": percentile(delays[10:], share / 100) * 1000 for share in (50, 99)}


def measure(folder: Path, place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one kind."""
    name = f"sales_{options.rows}"
    shop = make_shop(folder, place.kind, name, options.rows, options.at_once)
    figures: dict[str, Any] = {"kind": place.kind, "rows": options.rows, "load": os.getloadavg()[0]}
    figures |= rebuild(folder, place, options.rows)
    if place.kind in FILES:
        audited = command(folder, place, options.rows, "audit")
        return figures | {f"audit_{name}": value for name, value in audited.items()}
    if options.peers:
        figures |= send_plainly(place, shop, name)
    if options.trials:
        figures |= measure_freshness(folder.with_name(f"{place.kind}_probed"), place, options.trials)
    return figures


def main(argv: list[str]) -> int:
    """Measure each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sinks", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--at-once", type=int, default=100, help="rows of a script of Redis")
    parser.add_argument("--only", type=names(KINDS), default="")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args(argv)
    print(machine())
    found = []
    with tempfile.TemporaryDirectory() as folder:
        servers = Run(Path(folder) / "servers", os.getpid())
        try:
            for kind in [each for each in options.only.split(",") if each] or KINDS:
                address = {} if kind in FILES else dict(servers.find({"redis": "valkey"}.get(kind, kind)))
                if kind == "redis":
                    prefer(
                        next(
                            each.server[0]
                            for each in servers.started()
                            if each.kind == "valkey" and each.server
                        )
                    )
                found.append(measure(Path(folder) / kind, Place(kind, address), options))
                print(json.dumps(found[-1]), flush=True)
        finally:
            servers.end()
    Results(f"sinks_{options.rows}").write({"machine": machine(), "kinds": found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
