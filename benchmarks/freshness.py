"""How old an event is when a reader first sees it counted, at a steady rate: Seamline, stateful Spark, and Flink.

    python -m benchmarks.freshness [--rates 5000,20000] [--triggers "0 seconds,1 second"] [--views 1,5,20]

The generator, the pipeline and a poller are processes of their own on the same cores. An event counts as seen at the
first answer that counts as many views as had been sent when it was created. The first seconds of each run warm up and
are left out. *cores* is the pipeline's CPU, readers and broker not included. Flink only counts, in batches of a second;
its reader keeps the newest value of each key of its topic. make bench-flink sets it up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks import ads
from benchmarks.machine import machine, names, percentile
from benchmarks.peers.flink import flink
from benchmarks.peers.flink_counts import Counts
from benchmarks.peers.flink_jars import chosen
from benchmarks.peers.flink_sql import Work
from benchmarks.results import Results
from benchmarks.sampler import Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.model.errors import SetupError
from seamline.serve.read import read

ROOT = Path(__file__).resolve().parents[1]
WARM, SECONDS = 20.0, 25.0
POLL = 0.02


@dataclass(frozen=True)
class Run:
    """Delays in seconds and cores, at so many events a second."""

    system: str
    rate: int
    trigger: str
    views: int
    p50: float
    p90: float
    p99: float
    cores: float
    answers: int


Look = Callable[[], int]
"""Gives how many views are counted."""


def measured(
    system: str,
    rate: int,
    trigger: str,
    views: int,
    connection: KafkaConnection,
    topic: str,
    pid: int,
    look: Look,
    sender: str = "benchmarks.steady",
    seconds: float = WARM + SECONDS,
    every: float = POLL,
    warm: float = WARM,
) -> Run:
    """Send at a rate, look all the time, and compare."""
    seen: list[tuple[float, int]] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            # What is being written when somebody looks is there at the next look.
            try:
                counted = look()
            except OSError:
                continue
            seen.append((time.time(), counted))
            stop.wait(every)

    poller = threading.Thread(target=poll, daemon=True)
    ticks: list[tuple[float, int]] = []
    with (
        subprocess.Popen(
            [sys.executable, "-m", sender, connection.brokers, topic, str(rate), str(seconds)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as producer,
        Sampler(pid) as sampler,
    ):
        poller.start()
        assert producer.stdout
        ticks += [json.loads(line) for line in producer.stdout]
        end = ticks.pop()[0]
        total = ticks[-1][1]
        until = time.monotonic() + 60
        while (not seen or seen[-1][1] < total) and time.monotonic() < until:
            time.sleep(0.1)
        stop.set()
        poller.join()
    if seen[-1][1] != total:
        raise SystemExit(f"{system} counted {seen[-1][1]:,} views, {total:,} were sent.")
    began = ticks[0][0] + warm
    delays, at, before = [], 0, 0
    for moment, sent in ticks:
        while seen[at][1] < sent:
            at += 1
        if moment > began:
            delays += [seen[at][0] - moment] * (sent - before)
        before = sent
    cores = sampler.cpu(began, end) / (end - began)
    shares = [percentile(delays, share) for share in (0.5, 0.9, 0.99)]
    return Run(system, rate, trigger, views, *shares, cores, len(seen))


@contextmanager
def new_topic(connection: KafkaConnection, name: str) -> Iterator[str]:
    """Make a topic for one run."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(name, ads.PARTITIONS)
        yield name
        admin.delete_topic(name)


def seamline(connection: KafkaConnection, home: Path, rate: int, trigger: str, views: int) -> Run:
    """Measure `seamline.read` of a live stream."""
    with new_topic(connection, home.name) as topic:
        text = ads.definition(topic, epoch=1_000_000, trigger=trigger, views=views)
        stack = StreamStack(home, text, connection, "ad_campaigns")
        stack.start()
        assert stack.driver
        os.environ.update(stack.settings)
        stack.wait("the query", (home / "streams" / "ad_campaigns" / "driver.json").exists)

        def look() -> int:
            return pc.sum(read("ad_campaigns.views_by_campaign")["views"]).as_py() or 0

        try:
            return measured("seamline", rate, trigger, views, connection, topic, stack.driver.pid, look)
        finally:
            stack.stop()


def stateful(connection: KafkaConnection, home: Path, rate: int, trigger: str, views: int) -> Run:
    """Measure a reader of what stateful Spark appends."""
    home.mkdir(parents=True)
    with new_topic(connection, home.name) as topic:
        given = [connection.brokers, topic, str(home), "0", "1000000", trigger]
        with (
            (home / "log").open("w") as log,
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.peers.spark_stateful", *given],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=log,
            ) as process,
        ):
            held: list[DeltaTable] = []

            def look() -> int:
                if not held:
                    if not DeltaTable.is_deltatable(str(home / "speed")):
                        return 0
                    held.append(DeltaTable(home / "speed"))
                held[0].update_incremental()
                rows = held[0].to_pyarrow_table(columns=["campaign", "window_start", "views"])
                newest = rows.group_by(["campaign", "window_start"]).aggregate([("views", "max")])
                return pc.sum(newest["views_max"]).as_py() or 0

            try:
                return measured("stateful", rate, trigger, views, connection, topic, process.pid, look)
            finally:
                process.terminate()
                process.wait()


def on_flink(connection: KafkaConnection, home: Path, rate: int, trigger: str, views: int) -> Run:
    """Measure a reader of the topic that Flink counts into."""
    home.mkdir(parents=True)
    with (
        new_topic(connection, home.name) as topic,
        new_topic(connection, f"{home.name}.counts") as counts,
        flink(home) as engine,
    ):
        engine.submit(Work(connection.brokers, topic, counts))
        newest = Counts(connection, counts)
        try:
            return measured("flink", rate, trigger, views, connection, topic, engine.pid, newest.look)
        finally:
            newest.close()


def numbers(text: str) -> list[int]:
    """Read whole numbers with commas between."""
    return [int(each) for each in text.split(",")]


def main(argv: list[str]) -> int:
    """Measure each combination."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.freshness", description=__doc__)
    parser.add_argument("--rates", type=numbers, default="5000,20000")
    parser.add_argument("--triggers", default="0 seconds,1 second")
    parser.add_argument("--views", type=numbers, default="1,5,20")
    systems = {"seamline": seamline, "stateful": stateful, "flink": on_flink}
    parser.add_argument("--only", type=names(systems), default="")
    options = parser.parse_args(argv)
    only = chosen(options.only, systems)
    if not only:
        return SetupError.exit_code
    rates, views = options.rates, options.views
    triggers = options.triggers.split(",")
    plan = [("seamline", rate, trigger, 1) for rate in rates for trigger in triggers]
    plan += [("seamline", rates[0], triggers[0], count) for count in views if count > 1]
    plan += [("stateful", rate, triggers[-1], 1) for rate in rates]
    plan += [("flink", rate, "1 second", 1) for rate in rates]
    print(machine(), flush=True)
    runs = []
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        for number, (system, rate, trigger, count) in enumerate(plan):
            if system not in only:
                continue
            home = Path(folder) / f"run{number}"
            run = systems[system](connection, home, rate, trigger, count)
            shutil.rmtree(home)
            runs.append(run)
            print(
                f"{run.system:10} {run.rate:6,}/s, trigger {run.trigger}, {run.views} views: p50 {run.p50:.2f} s, "
                f"p90 {run.p90:.2f} s, p99 {run.p99:.2f} s, {run.cores:.2f} cores, {run.answers} answers",
                flush=True,
            )
    Results("freshness").write({"machine": machine(), "runs": [asdict(run) for run in runs]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
