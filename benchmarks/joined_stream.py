"""A live join at a steady rate: how old a click is when a reader sees its pair, and what the driver needs over time.

    python -m benchmarks.joined_stream [--rate 5000] [--seconds 45] [--only joined,apart]
        [--reach "1 hour"] [--upkeep 60]

The events are those of ``benchmarks.joins``, with the time of their creation, four impressions to a click. With the
join a reader adds up pairs, without it clicks, and a click counts as seen as in ``benchmarks.freshness``; the first
twenty seconds warm up. Memory is the median of the driver and all its processes in the first and in the last fifth of
the run, its slope is that of the second half. At the end the driver is killed with all its processes, and started
again: the time until the next epoch that has records is held, with the index that it has left. ``--upkeep`` has the
tables tidied every so many seconds, as Airflow does: a log that nobody tidies lists more files with every epoch.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.compute as pc

from benchmarks.ads import PARTITIONS, bulk_producer, produce
from benchmarks.freshness import SECONDS, WARM, Run, measured
from benchmarks.joins import APART, DEFINITION, JOINED
from benchmarks.machine import machine, names
from benchmarks.results import Results
from benchmarks.sampler import Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.serve.read import read

COUNTED = {"joined": ("ads.by_minute", "pairs"), "apart": ("ads.clicks", "n")}
EVERY = {True: 0.02, False: 1.0}
"""Seconds between a reader's looks: in a short run, and in a long one."""
MOST = 1_000_000


@dataclass(frozen=True)
class Life:
    """What a run was like: delays in seconds, memory in MB, its slope in MB an hour, seconds to the next epoch."""

    run: Run
    first_mb: float
    last_mb: float
    most_mb: float
    slope: float
    restarted: float


def live(name: str, connection: KafkaConnection, home: Path, options: argparse.Namespace) -> Life:
    """Run a stream, end it by force, and start it again."""
    topic = home.name
    with TopicAdmin(connection) as admin:
        for source in ("shown", "clicked"):
            admin.create_topic(f"{topic}.{source}", PARTITIONS)
    joined = APART if name == "apart" else JOINED.format(reach=options.reach)
    stack = StreamStack(home, DEFINITION.format(topic=topic, joined=joined, most=MOST), connection, "ads")
    stack.start()
    assert stack.driver
    os.environ.update(stack.settings)
    stack.wait("the query", (home / "streams" / "ads" / "driver.json").exists)
    view, column = COUNTED[name]

    def look() -> int:
        return pc.sum(read(view)[column]).as_py() or 0

    with Sampler(stack.driver.pid) as sampler, tidied(stack, options.upkeep):
        run = measured(
            name,
            options.rate,
            "0 seconds",
            1,
            connection,
            topic,
            stack.driver.pid,
            look,
            "benchmarks.steady_joins",
            options.seconds,
            EVERY[options.seconds < 120],
        )
    restarted = restart(stack, connection, topic)
    stack.stop()
    return Life(run, *memory(sampler.samples), restarted)


@contextmanager
def tidied(stack: StreamStack, every: float) -> Iterator[None]:
    """Run upkeep every so many seconds while the block runs; 0 for never."""
    done = threading.Event()

    def work() -> None:
        command = [sys.executable, "-m", "seamline.cli", "upkeep", stack.name]
        while not done.wait(every):
            subprocess.run(command, env=stack.settings, check=True, stdout=subprocess.DEVNULL)

    beside = threading.Thread(target=work, daemon=True)
    if every:
        beside.start()
    try:
        yield
    finally:
        done.set()
        if every:
            beside.join()


def memory(samples: Sequence[tuple[float, float, float]]) -> tuple[float, float, float, float]:
    """Return the memory of the first and the last fifth, the most, and the slope of the second half, an hour."""
    found = np.array([(at, held) for at, _, held in samples])
    fifth, half = len(found) // 5, len(found) // 2
    slope = np.polyfit(found[half:, 0], found[half:, 1], 1)[0] * 3600
    return (
        median(found[:fifth, 1].tolist()),
        median(found[-fifth:, 1].tolist()),
        float(found[:, 1].max()),
        float(slope),
    )


def restart(stack: StreamStack, connection: KafkaConnection, topic: str) -> float:
    """Kill the driver, send one event more, and return the seconds from its start to the epoch that has it."""
    stack.kill()
    before, producer = stack.offsets_read(), bulk_producer(connection)
    produce(producer, f"{topic}.clicked", b'{"ad":"none","at":"2026-01-05T00:00:00Z"}', 0)
    producer.flush()
    began = time.monotonic()
    stack.start()
    stack.wait("an epoch", lambda: stack.offsets_read() > before, 600, 0.05)
    return time.monotonic() - began


def main(argv: list[str]) -> int:
    """Let each way live, and print what it was like."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joined_stream", description=__doc__)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=WARM + SECONDS)
    parser.add_argument("--reach", default="1 hour")
    parser.add_argument("--only", type=names(COUNTED), default="")
    parser.add_argument("--upkeep", type=float, default=0.0, help="seconds between two runs; 0 for none")
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    lives = []
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        for name in (options.only or ",".join(COUNTED)).split(","):
            home = Path(folder) / name
            life = live(name, connection, home, options)
            shutil.rmtree(home)
            lives.append(life)
            run = life.run
            print(
                f"{name}: {run.rate:,}/s for {options.seconds:,.0f} s: p50 {run.p50:.2f} s, p99 {run.p99:.2f} s, "
                f"{run.cores:.2f} cores; memory {life.first_mb:,.0f} MB, then {life.last_mb:,.0f}, "
                f"at most {life.most_mb:,.0f}, {life.slope:+,.0f} MB an hour; restart {life.restarted:.1f} s",
                flush=True,
            )
    Results("joined_stream").write({"machine": machine(), "lives": [asdict(each) for each in lives]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
