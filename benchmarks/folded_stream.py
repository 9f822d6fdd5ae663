"""A live process function at a steady rate: how old a row is when a reader sees what was emitted because of it.

    python -m benchmarks.folded_stream [--rate 5000] [--users 100000] [--hot 0.2] [--seconds 90] [--processes 1]

Each row is counted in the state of its user, has a timer moved, and emits a row at once, which a view counts; it counts
as seen as in ``benchmarks.freshness``. ``--hot`` is the share of rows that one user has. Memory is that of the driver
and all its processes, at most. At the end single rows are sent, on time and a minute late, behind the watermark and
rows of their users; then the driver is killed with all its processes and started again: the time until the next epoch
that has records is held, with all tails made anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc
from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS, bulk_producer, produce
from benchmarks.freshness import Run, measured
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.sampler import Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.serve.read import read

TOPIC = "touched"
LATE_USERS = range(1, 8)
WARM, SECONDS = 40.0, 50.0
"""Twice as long as elsewhere: another process, and many keys that are new."""
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Process, Stream, Tumbling, View, Watermark, count

pipeline = Pipeline(
    name="touched",
    source=[
        KafkaSource(
            name="rows",
            topic="touched",
            schema="user BIGINT, at TIMESTAMP",
            event_time="at",
            watermark=Watermark("2 seconds"),
        )
    ],
    derive=[Process("touches", of="rows", by="benchmarks.folded_stream:Touched", keys=["user"])],
    views=[View("by_times", of="touches", keys=["times"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch("1 day", "2020-01-01"),
    stream=Stream(trigger="0 seconds", max_offsets_per_epoch=1_000_000, fold_processes=PROCESSES),
)
"""


class Touched:
    """Counts the rows of a user, who is forgotten after a minute without one."""

    state = "seen BIGINT"
    emits = "times BIGINT"

    def row(self, state: Any, row: Any, out: Any) -> tuple[int]:
        """Count, emit, and wait from here."""
        seen = (state.seen if state else 0) + 1
        out.emit(min(seen, 10))
        out.clear_timers()
        out.timer(out.at + timedelta(minutes=1))
        return (seen,)

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """Nobody came."""


@dataclass(frozen=True)
class Life:
    """What a run was like: delays in seconds, memory in MB, seconds to the next epoch."""

    run: Run
    users: int
    hot: float
    most_mb: float
    restarted: float
    on_time: float
    late: float


def live(connection: KafkaConnection, home: Path, options: argparse.Namespace) -> Life:
    """Run a stream, end it by force, and start it again."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    os.environ.update({"BENCH_USERS": str(options.users), "BENCH_HOT": str(options.hot), "PYTHONPATH": path})
    stack = StreamStack(home, DEFINITION.replace("PROCESSES", str(options.processes)), connection, "touched")
    stack.start()
    assert stack.driver
    os.environ.update(stack.settings)
    stack.wait("the query", (home / "streams" / "touched" / "driver.json").exists)

    def look() -> int:
        return pc.sum(read("touched.by_times")["n"]).as_py() or 0

    with Sampler(stack.driver.pid) as sampler:
        run = measured(
            "folded",
            options.rate,
            "0 seconds",
            1,
            connection,
            TOPIC,
            stack.driver.pid,
            look,
            "benchmarks.steady_users",
            options.seconds,
            warm=WARM,
        )
    producer = bulk_producer(connection)
    on_time, late = (median(time_row(producer, look, user, back) for user in LATE_USERS) for back in (0, 60))
    stack.kill()
    before = stack.offsets_read()
    produce(producer, TOPIC, b'{"user":1,"at":"2026-01-05T00:00:00Z"}', 0)
    producer.flush()
    began = time.monotonic()
    stack.start()
    stack.wait("an epoch", lambda: stack.offsets_read() > before, 600, 0.05)
    took = time.monotonic() - began
    stack.stop()
    most = max(held for _, _, held in sampler.samples)
    return Life(run, options.users, options.hot, most, took, on_time, late)


def time_row(producer: Producer, look: Callable[[], int], user: int, back: float) -> float:
    """Send a row that is some seconds old while nothing else is sent; return when a reader sees it, in seconds."""
    before, at = look(), datetime.now(UTC) - timedelta(seconds=back)
    began = time.monotonic()
    produce(producer, TOPIC, f'{{"user":{user},"at":"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}}'.encode(), 0)
    producer.flush()
    while look() <= before:
        time.sleep(0.005)
    return time.monotonic() - began


def main(argv: list[str]) -> int:
    """Let it live, and print what it was like."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folded_stream", description=__doc__)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument(
        "--processes", type=int, default=0, help="that share the keys [default: the stream's own]"
    )
    parser.add_argument("--hot", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=WARM + SECONDS, help=f"the first {WARM:.0f} warm up")
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        life = live(connection, Path(folder) / "touched", options)
    run = life.run
    print(
        f"{run.rate:,}/s of {life.users:,} users, one of them with {life.hot:.0%}, for {options.seconds:,.0f} s: "
        f"p50 {run.p50:.2f} s, p99 {run.p99:.2f} s, {run.cores:.2f} cores; at most {life.most_mb:,.0f} MB; "
        f"a row on time {life.on_time:.2f} s, a late one {life.late:.2f} s; restart {life.restarted:.1f} s",
        flush=True,
    )
    Results("folded_stream").write({"machine": machine(), "life": asdict(life)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
