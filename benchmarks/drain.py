"""How fast a backlog is read: Seamline, lambda jobs written by hand on Spark, and Flink, in one run.

    python -m benchmarks.drain [--records 6000000] [--rounds 3] [--only seamline,lambda]

A topic of four partitions is loaded once with ad events; each system in turn reads all of it from the beginning, in a
process of its own, in another order each round. Rates and CPU are of the steady part: from the first epoch that ends
with a quarter of the records read, to the last. Every answer is compared with what the generator counted.

Flink has no epochs: it is asked twice a second how many records it has read. Its first epoch is when that is not 0
any more; its CPU and whole time include what it writes after the last record. flink_only counts, flink_work archives
every record as well. make bench-flink sets it up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import duckdb
from deltalake import DeltaTable

from benchmarks import ads
from benchmarks.machine import machine, names
from benchmarks.peers.flink import Job, flink
from benchmarks.peers.flink_counts import Counts
from benchmarks.peers.flink_jars import chosen
from benchmarks.peers.flink_sql import Work
from benchmarks.results import Results
from benchmarks.sampler import EVERY, Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.local.stack import StreamStack
from seamline.model.errors import SetupError
from seamline.serve.read import read

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 1_000_000
STEADY_FROM = 0.25
PATIENCE = 600
WATCH = 0.5
Truth = dict[tuple[int, datetime], int]


@dataclass(frozen=True)
class Run:
    """One drain: seconds from the start of the process, events a second, CPU seconds per million events, MB."""

    system: str
    seconds: float
    first_epoch: float
    steady_rate: float
    whole_rate: float
    cpu_per_million: float
    whole_cpu_per_million: float
    peak_mb: float


@dataclass(frozen=True)
class Drain:
    """What every system is given."""

    connection: KafkaConnection
    topic: str
    count: int
    truth: Truth

    @property
    def epoch(self) -> int:
        """The most records of an epoch: a short drain has a steady part, too.

        Spark rounds each partition's share down; a peer that counts its epochs would leave some records unread.
        """
        return min(EPOCH, -(-self.count // 6)) + ads.PARTITIONS


def measured(
    system: str,
    drain: Drain,
    began: float,
    epochs: Sequence[tuple[float, int]],
    sampler: Sampler,
    over: float = 0.0,
) -> Run:
    """Work out the figures from the ends of epochs: (epoch seconds, records read by then).

    ``over`` is when all was written, if that is later than the last epoch's end.
    """
    at, rows = next(each for each in epochs if each[1] >= STEADY_FROM * drain.count)
    end = epochs[-1][0]
    over = over or end
    million = drain.count / 1e6
    return Run(
        system=system,
        seconds=over - began,
        first_epoch=epochs[0][0] - began,
        steady_rate=(drain.count - rows) / max(end - at, 1e-9),
        whole_rate=drain.count / (over - began),
        cpu_per_million=sampler.cpu(at, over) / ((drain.count - rows) / 1e6),
        whole_cpu_per_million=sampler.at(over) / million,
        peak_mb=sampler.peak_mb,
    )


def seamline(drain: Drain, home: Path) -> Run:
    """Drain with the shipped example: archive, ledger and slices."""
    text = ads.definition(drain.topic, epoch=drain.epoch)
    stack = StreamStack(home, text, drain.connection, "ad_campaigns")
    began = time.time()
    stack.start()
    assert stack.driver
    with Sampler(stack.driver.pid) as sampler:
        stack.drain(drain.count, PATIENCE, WATCH)
    stack.stop()
    os.environ.update(stack.settings)
    answer = read("ad_campaigns.views_by_campaign")
    counted = zip(*(answer[name].to_pylist() for name in ("campaign", "window_start", "views")), strict=True)
    require({(campaign, at): views for campaign, at, views in counted}, drain.truth, "seamline")
    rows, ends = 0, []
    for epoch in Ledger.ensure(stack.layout).read():
        if epoch.ranges:
            rows += sum(map(len, epoch.ranges))
            ends.append((epoch.committed_at.timestamp(), rows))
    return measured("seamline", drain, began, ends, sampler)


def peer(module: str) -> Callable[[Drain, Path], Run]:
    """Make the drain of a peer on Spark."""

    def run(drain: Drain, home: Path) -> Run:
        began = time.time()
        ends, sampler = run_peer(module, drain.connection, drain.topic, home, drain.count, drain.epoch)
        require(of_speed(home / "speed", latest=module == "spark_stateful"), drain.truth, module)
        return measured(module, drain, began, ends, sampler)

    return run


def run_peer(
    module: str, connection: KafkaConnection, topic: str, home: Path, count: int, epoch: int
) -> tuple[list[tuple[float, int]], Sampler]:
    """Let a peer on Spark read a topic; return the ends of its epochs, and what it cost."""
    home.mkdir(parents=True)
    ends: list[tuple[float, int]] = []
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                f"benchmarks.peers.{module}",
                connection.brokers,
                topic,
                str(home),
                str(count),
                str(epoch),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
        Sampler(process.pid) as sampler,
    ):
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                ends.append((said["at"], said["rows"]))
    if process.returncode:
        raise SystemExit(f"{module} failed:\n{(home / 'log').read_text()[-3000:]}")
    return ends, sampler


def on_flink(system: str, *, archive: bool) -> Callable[[Drain, Path], Run]:
    """Make the drain of Flink: its job ends where the topic does."""

    def run(drain: Drain, home: Path) -> Run:
        home.mkdir(parents=True)
        counts = f"{drain.topic}.{home.name}"
        with TopicAdmin(drain.connection) as admin:
            admin.create_topic(counts, ads.PARTITIONS)
        files = home / "archive" if archive else None
        work = Work(drain.connection.brokers, drain.topic, counts, files, bounded=True)
        began = time.time()
        with flink(home) as engine, Sampler(engine.pid) as sampler:
            over, ends = progress(engine.submit(work), drain.count)
            time.sleep(2 * EVERY)
        newest = Counts(drain.connection, counts)
        require(newest.everything(PATIENCE), drain.truth, system)
        newest.close()
        if files:
            require_archived(files, drain.count, system)
        return measured(system, drain, began, ends, sampler, over)

    return run


def progress(job: Job, count: int) -> tuple[float, list[tuple[float, int]]]:
    """Watch a job to its end; give when that was, and when how many records were read."""
    ends = [(time.time(), 0)]
    with ThreadPoolExecutor(1) as waiter:
        over = waiter.submit(job.wait)
        while not over.done():
            time.sleep(WATCH)
            if (rows := job.records()) > ends[-1][1]:
                ends.append((time.time(), rows))
    if ends[-1][1] < count:
        ends.append((over.result(), count))
    return over.result(), ends[1:]


def require_archived(files: Path, count: int, system: str) -> None:
    """Refuse figures of an archive that lacks a record or has one twice."""
    query = """SELECT count(*), count(DISTINCT ("partition", "offset")) FROM read_parquet(?)"""
    with duckdb.connect() as session:
        [found] = session.execute(query, [f"{files}/part-*"]).fetchall()
    if found != (count, count):
        raise SystemExit(f"{system} archived {found} records (all, different), there are {count:,}.")


def of_speed(path: Path, *, latest: bool) -> Truth:
    """Add up a peer's partial counts; ``latest``: each row replaces the ones before."""
    rows = DeltaTable(path).to_pyarrow_table()
    how = "max" if latest else "sum"
    found = rows.group_by(["campaign", "window_start"]).aggregate([("views", how)])
    columns = (found[name].to_pylist() for name in ("campaign", "window_start", f"views_{how}"))
    return {(campaign, at): views for campaign, at, views in zip(*columns, strict=True)}


def require(found: Truth, truth: Truth, system: str) -> None:
    """Refuse figures of a system that has counted wrongly."""
    if found != truth:
        raise SystemExit(
            f"{system} counted {sum(found.values()):,} views, there are {sum(truth.values()):,}."
        )


SYSTEMS: dict[str, Callable[[Drain, Path], Run]] = {
    "seamline": seamline,
    "lambda": peer("spark_lambda"),
    "tuned": peer("spark_tuned"),
    "stateful": peer("spark_stateful"),
    "flink_only": on_flink("flink_only", archive=False),
    "flink_work": on_flink("flink_work", archive=True),
}


def main(argv: list[str]) -> int:
    """Load the topic, let the systems read it in turn, and print medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drain", description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=names(SYSTEMS), default="")
    options = parser.parse_args(argv)
    wanted = chosen(options.only, SYSTEMS)
    if not wanted:
        return SetupError.exit_code
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        began = time.monotonic()
        truth = ads.preload(connection, "ads", options.records)
        drain = Drain(connection, "ads", options.records, truth)
        print(f"{options.records:,} events loaded in {time.monotonic() - began:.0f} s", flush=True)
        runs = run_in_turns(
            wanted, options.rounds, Path(folder), lambda name, home: SYSTEMS[name](drain, home)
        )
    print()
    for name in wanted:
        mine = [run for run in runs if run.system in (name, f"spark_{name}")]
        print(
            f"{name}: median of {len(mine)}: {median(r.steady_rate for r in mine):,.0f} events/s, "
            f"{median(r.cpu_per_million for r in mine):.1f} CPU s per million"
        )
    Results("drain").write({"machine": machine(), "runs": [asdict(run) for run in runs]})
    return 0


def run_in_turns(
    wanted: Sequence[str], rounds: int, folder: Path, run: Callable[[str, Path], Run]
) -> list[Run]:
    """Run systems by their names, each once a round in a folder of its own, and print what each run was."""
    runs: list[Run] = []
    for number in range(rounds):
        turn = number % len(wanted)
        for name in [*wanted[turn:], *wanted[:turn]]:
            home = folder / f"{name}-{number}"
            runs.append(run(name, home))
            shutil.rmtree(home)
            print(shown(runs[-1]), flush=True)
    return runs


def shown(run: Run) -> str:
    """Say what one run was."""
    return (
        f"{run.system:15} {run.steady_rate:9,.0f} events/s steady, {run.whole_rate:9,.0f} whole; "
        f"CPU s per million {run.cpu_per_million:5.1f} steady, {run.whole_cpu_per_million:5.1f} whole; "
        f"first epoch {run.first_epoch:5.1f} s, all {run.seconds:5.1f} s, {run.peak_mb:,.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
