"""What time does to tables and answers: hours of epochs at a trigger of two seconds, committed as fast as it goes.

    python -m benchmarks.ageing [--hours 1] [--rate 200]

Real epochs: the shipped kernel over ad events, the shipped writer's commits, the shipped upkeep every ten minutes of
stream. Only the clock is made up: an epoch follows the one before at once. Nothing was built by batch meanwhile, so an
answer adds up all of it. Then point and range answers through `seamline.read`: of tables in which nothing happens
between two reads, and of tables to which an epoch is committed before each read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks import ads
from benchmarks.batch import TOPIC
from benchmarks.kernels import next_task, records
from benchmarks.machine import machine, percentile
from benchmarks.results import Results
from seamline.kernel.epoch_kernel import run
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import keep_lookup_version
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.serve.read import read
from seamline.spark.stream.epoch_writer import Writer

TRIGGER = timedelta(seconds=2)
KEPT_EVERY = 300
EDGE_EVERY = 30
VIEW = "ad_campaigns.views_by_campaign"
READS = 200


class Life:
    """A pipeline that reads so many events in each epoch."""

    def __init__(self, home: Path, rate: int) -> None:
        (home / "pipelines").mkdir()
        self.definitions, self.warehouse = home / "pipelines", home / "warehouse"
        (self.definitions / "ad_campaigns.py").write_text(ads.definition(TOPIC, epoch=1_000_000))
        self.pipeline: CompiledPipeline = load_pipeline(self.definitions, "ad_campaigns")
        self.layout = Layout(self.warehouse, "ad_campaigns")
        self.count, self.rows = rate * int(TRIGGER.total_seconds()), 0
        self.pool = ads.pool()
        joins = self.pipeline.record.lookups
        self.lookups = {
            join.name: self.layout.lookup(join.name, keep_lookup_version(join, self.layout)) for join in joins
        }
        self.writer = Writer(self.layout, self.pipeline, 1)
        self.at = ads.BEGIN

    def epoch(self) -> float:
        """Hold one epoch; give the seconds that its commits took."""
        step = TRIGGER / self.count
        values = []
        for number in range(self.count):
            moment = self.at + number * step
            tail = ads.TAIL % f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".encode()
            values.append(self.pool.texts[(self.rows + number) % ads.POOL] + tail)
        config = next_task(self.writer, self.lookups)
        result = run(records(values, TOPIC, self.rows).to_batches(), config)
        epoch = Epoch(
            config.epoch,
            1,
            self.at,
            self.pipeline.record_version,
            ranges=(OffsetRange(Lane("t", 0), self.rows, self.rows + self.count),),
            accepted=dict(result.accepted),
            edge=config.epoch % EDGE_EVERY == EDGE_EVERY - 1,
            watermark=self.at - timedelta(seconds=10),
        )
        began = time.perf_counter()
        self.writer.commit(epoch, result, self.writer.current)
        took = time.perf_counter() - began
        self.rows += self.count
        self.at += TRIGGER
        return took

    def upkeep(self) -> None:
        """Do what the upkeep DAG does; the writer's handles move on with their next commit."""
        maintain_tables(self.pipeline, self.layout)

    def ask(self, start: datetime, end: datetime, where: str | None) -> float:
        """Read, and give the seconds."""
        began = time.perf_counter()
        read(VIEW, where, start=start, end=end, warehouse=self.warehouse, definitions=self.definitions)
        return time.perf_counter() - began


def main(argv: list[str]) -> int:
    """Age, then ask."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ageing", description=__doc__)
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--rate", type=int, default=200, help="events per second of stream")
    parser.add_argument("--reads", type=int, default=READS)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    count = int(options.hours * 3600 / TRIGGER.total_seconds())
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), options.rate)
        seconds, most, began = [], 0, time.monotonic()
        for number in range(count):
            seconds.append(life.epoch())
            if number % KEPT_EVERY == KEPT_EVERY - 1:
                most = max(most, files(life.warehouse))
                life.upkeep()
        young, old = median(seconds[10:110]), median(seconds[-100:])
        million = life.rows / 1e6
        print(f"{count:,} epochs, {life.rows:,} events in {time.monotonic() - began:.0f} s")
        print(
            f"commits of an epoch: first hundred {young * 1e3:.1f} ms, last {old * 1e3:.1f} ms: {old / young:.2f} times"
        )
        held = files(life.warehouse)
        entries = sum(1 for _ in life.warehouse.rglob("_delta_log/*"))
        size = sum(path.stat().st_size for path in life.warehouse.rglob("*") if path.is_file())
        per_event = size / life.rows
        print(
            f"files: {held:,}, at most {most:,} before upkeep; log entries {entries:,}; "
            f"{per_event:.0f} bytes an event"
        )
        served = serving(life, options.reads)
    Results("ageing").write(
        {
            "machine": machine(),
            "hours": options.hours,
            "epochs": count,
            "ratio": old / young,
            "files_per_million": held / million,
            "log_entries_per_million": entries / million,
            "bytes_per_event": per_event,
            **served,
        }
    )
    return 0


def files(warehouse: Path) -> int:
    """Count the Parquet files on disk, those that no version names any more included."""
    return sum(1 for path in warehouse.rglob("*.parquet") if "_delta_log" not in path.parts)


def serving(life: Life, reads: int) -> dict[str, float]:
    """Ask points and ranges, with and without an epoch before each."""
    window = ads.BEGIN + timedelta(seconds=10)
    last = life.at - timedelta(seconds=20)
    recent = last.replace(second=last.second // 10 * 10)
    questions: dict[str, Callable[[int], float]] = {
        "point": lambda n: life.ask(recent, recent + timedelta(seconds=10), f"campaign = {n % 100}"),
        "old point": lambda n: life.ask(window, window + timedelta(seconds=10), f"campaign = {n % 100}"),
        "ten minutes": lambda n: life.ask(recent - timedelta(minutes=10), recent, f"campaign = {n % 100}"),
    }
    found = {}
    for name, ask in questions.items():
        ask(1)
        for how in ("cached", "changed"):
            took = []
            for number in range(reads):
                if how == "changed":
                    life.epoch()
                took.append(ask(1 if how == "cached" else number) * 1e3)
            p50, p99 = percentile(took, 0.5), percentile(took, 0.99)
            print(f"{name}, {how}: p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)
            key = name.replace(" ", "_")
            found |= {f"{key}_{how}_p50_ms": p50, f"{key}_{how}_p99_ms": p99}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
