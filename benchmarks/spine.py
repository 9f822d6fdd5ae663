"""The spine's figures: freshness, drain, query, memory, parse time.

    python -m benchmarks.spine                 # all sections, about 5 minutes
    python -m benchmarks.spine drain query     # some of them

Every figure is computed in the run that prints it. A broker and a stream of its own run on free ports in a
temporary folder; nothing of a demo is touched.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc

from benchmarks.machine import cpu_seconds, machine, memory_mb, percentile
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.local.broker import Broker
from seamline.local.flights import Span, replay_flights
from seamline.local.stack import StreamStack
from seamline.serve.read import read

ROOT = Path(__file__).resolve().parents[1]
TOPIC = "flights.departures"
RATE, SECONDS = 2_000, 40
COPIES, EPOCH = 2, 100_000


def main(argv: list[str] | None = None) -> int:
    """Run the sections asked for."""
    sections: dict[str, Callable[[KafkaConnection, Path], None]] = {
        "parse": parse,
        "drain": drain,
        "freshness": freshness,
    }
    parser = argparse.ArgumentParser(prog="benchmarks.spine", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(sections))
    wanted = parser.parse_args(argv).sections or list(sections)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        for name in wanted:
            print(f"\n== {name}", flush=True)
            sections[name](connection, Path(folder) / name)
    return 0


@contextmanager
def broker(home: Path) -> Iterator[KafkaConnection]:
    """Run a broker on free ports."""
    found = Broker(home / "kafka", free_port(), free_port())
    found.start()
    try:
        yield found.connection
    finally:
        found.stop()


def free_port() -> int:
    """Ask the system for a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def flights_stack(home: Path, connection: KafkaConnection, *, epoch: int = 1_000_000) -> StreamStack:
    """Make a stack for the demo's own definition, with so many offsets an epoch at most."""
    definition = (ROOT / "include" / "pipelines" / "flights.py").read_text()
    definition = definition.replace("stream=Stream(", f"stream=Stream(max_offsets_per_epoch={epoch}, ")
    return StreamStack(home, definition, connection, "flights")


def parse(connection: KafkaConnection, home: Path) -> None:
    """Time the import of dags/ in a fresh process, first and again."""
    code = (
        "import airflow.sdk, runpy, time; began = time.perf_counter(); runpy.run_path('dags/pipelines.py'); "
        "print(time.perf_counter() - began)"
    )
    env = {**os.environ, "SEAMLINE_HOME": str(home), "AIRFLOW_HOME": str(home / "airflow")}
    env["PYTHONPATH"] = str(ROOT / "include")
    times = []
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        times.append(float(done.stdout.split()[-1]))
    median = percentile(times[1:], 0.5)
    print(f"parse of dags/: first {times[0]:.2f} s, then median {median:.2f} s after airflow.sdk")


def drain(connection: KafkaConnection, home: Path) -> None:
    """Drain a preloaded topic: every flight of the year, a few times over."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(TOPIC, 4)
        for copy in range(COPIES):
            replay_flights(
                connection, TOPIC, 4, home / f"journal-{copy}.parquet", span=Span(), mischief=False
            )
        total = sum(admin.end_offsets(TOPIC).values())
    stack = flights_stack(home, connection, epoch=EPOCH)
    began = time.monotonic()
    stack.start()
    assert stack.driver
    pid = stack.driver.pid
    try:
        stack.wait("the first epoch", lambda: stack.epoch() >= 0)
        first, start_up = time.monotonic() - began, cpu_seconds(pid)
        stack.drain(total, 600)
        took, cpu = time.monotonic() - began, cpu_seconds(pid)
        from seamline.lake.log.ledger import Ledger

        ledger = [each for each in Ledger.ensure(stack.layout).read() if each.ranges]
        steady = ledger[1:]
        rows = sum(len(part) for each in steady for part in each.ranges)
        seconds = (
            (steady[-1].committed_at - ledger[0].committed_at).total_seconds() if steady else float("nan")
        )
        print(
            f"{total:,} records in {took:.1f} s from process start; first epoch committed after {first:.1f} s"
        )
        print(f"steady: {rows / seconds:,.0f} records/s over {len(steady)} epochs")
        print(f"CPU: {cpu / total * 1e6:.1f} s per million records, process start and JIT included")
        print(f"CPU: {(cpu - start_up) / rows * 1e6:.1f} s per million records after the first epoch")
        print(f"memory of the driver, JVM and workers: {memory_mb(pid):,.0f} MB")
        query(stack)
    finally:
        stack.stop()
        with TopicAdmin(connection) as admin:
            admin.delete_topic(TOPIC)


def query(stack: StreamStack) -> None:
    """Time the query command cold, and the library warm."""
    os.environ.update(stack.settings)
    command = [
        sys.executable,
        "-m",
        "seamline.cli",
        "query",
        "flights.delay_by_carrier",
        "--from",
        "2013-06-01",
    ]
    command += ["--to", "2013-06-02", "--format", "json"]
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(
            command, env=stack.settings, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        times.append(time.perf_counter() - began)
    print(f"seamline query, one day, new process: median {percentile(times, 0.5):.2f} s")
    for name, bounds in (("one day", {"start": "2013-06-01", "end": "2013-06-02"}), ("the year", {})):
        warm = []
        for _ in range(12):
            began = time.perf_counter()
            read("flights.delay_by_carrier", **bounds)
            warm.append(time.perf_counter() - began)
        print(f"seamline.read, {name}, warm: median {percentile(warm[2:], 0.5) * 1e3:.0f} ms")


def freshness(connection: KafkaConnection, home: Path) -> None:
    """Measure from the creation of an event to a read that counts it, at a steady rate."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(TOPIC, 4)
    stack = flights_stack(home, connection)
    stack.start()
    os.environ.update(stack.settings)
    created: list[float] = []
    seen: list[tuple[float, int]] = []
    stop = threading.Event()
    try:
        with RecordWriter(connection, linger_ms=5) as writer:
            send(writer, 0, created)
            stack.wait("the first epoch", lambda: stack.epoch() >= 0)
            poller = threading.Thread(target=poll, args=(seen, stop))
            poller.start()
            paced(writer, created)
        stack.wait("every event to be read", lambda: bool(seen) and seen[-1][1] >= len(created), 60)
    finally:
        stop.set()
        stack.stop()
    report(created, seen)


def send(writer: RecordWriter, number: int, created: list[float]) -> None:
    """Create one event now and send it."""
    now = datetime.now(UTC)
    flight = {
        "carrier": ("UA", "AA", "B6", "DL")[number % 4],
        "flight": number,
        "origin": "JFK",
        "dest": "SFO",
        "tailnum": f"N{number % 997}",
        "sched_dep": now.isoformat(),
        "dep_delay": float(number % 60),
        "distance": 2586.0,
    }
    created.append(time.monotonic())
    writer.send(TOPIC, key=b"", value=json.dumps(flight).encode(), partition=number % 4)


def paced(writer: RecordWriter, created: list[float]) -> None:
    """Send at the steady rate, in ticks of 10 ms."""
    began, sent = time.monotonic(), 0
    while sent < RATE * SECONDS:
        due = min(int((time.monotonic() - began) * RATE), RATE * SECONDS)
        for _ in range(due - sent):
            sent += 1
            send(writer, sent, created)
        time.sleep(0.01)


def poll(seen: list[tuple[float, int]], stop: threading.Event) -> None:
    """Read again and again, and note when how many events are counted."""
    while not stop.is_set():
        table = read("flights.delay_by_carrier", start=datetime.now(UTC).date().isoformat())
        seen.append((time.monotonic(), pc.sum(table["flights"]).as_py() or 0))
        time.sleep(0.02)


def report(created: list[float], seen: list[tuple[float, int]]) -> None:
    """Print how old events were when first counted; the first fifth warms up and is left out."""
    delays, at = [], 0
    for index, moment in enumerate(created):
        while at < len(seen) and seen[at][1] <= index:
            at += 1
        if at < len(seen) and index > len(created) // 5:
            delays.append(seen[at][0] - moment)
    print(f"{RATE:,} events/s, trigger as in the definition, {len(delays):,} events, {len(seen)} reads")
    for share in (0.5, 0.9, 0.99):
        print(f"event to readable p{share * 100:.0f}: {percentile(delays, share):.2f} s")


if __name__ == "__main__":
    sys.exit(main())
