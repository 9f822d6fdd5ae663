"""A pipeline in a bucket whose epochs are committed, and whose answers are read by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.ports import free_ports
from tests.services.addresses import Bucket
from tests.services.s3 import make_bucket, start_moto, start_versitygw

from benchmarks.kernels import next_task, records
from seamline.kernel.epoch_kernel import run
from seamline.lake.storage.arrow_types import generations_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import parse_location
from seamline.lake.tables.control_table import ControlTable
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.serve.read import read
from seamline.spark.stream.epoch_writer import Writer

ROOT = Path(__file__).resolve().parents[1]
ROWS, KEYS = 1_000, 100
NOW = datetime(2026, 1, 6, tzinfo=UTC)
SERVERS = {"moto": start_moto, "versitygw": start_versitygw}
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count, sum

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="sales",
        schema="customer STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL",
        event_time="sold_at",
    ),
    views=[
        View(f"v{at}", keys=["customer"], window=Tumbling("1 hour"), measures={"n": count(), "total": sum("amount")})
        for at in range(VIEWS)
    ],
    batch=Batch(interval="1 day", start="2026-01-01"),
)
"""


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of this process's CPU time."""

    wall: float
    cpu: float

    @classmethod
    def of(cls, act: Callable[[], object]) -> Spent:
        """Do something."""
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        return cls(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def store(kind: str, home: Path) -> Iterator[Bucket]:
    """Run a server with an empty bucket while the block runs."""
    (home / "data").mkdir()
    server = SERVERS[kind](home, home / "data", free_ports())
    try:
        yield make_bucket(**server.address)
    finally:
        os.kill(server.pid, server.sign)
        with suppress(ChildProcessError):
            os.waitpid(server.pid, 0)


def use_bucket(bucket: Bucket, port: int, home: Path) -> None:
    """Have this process and its children speak to the bucket through a port."""
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": bucket.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
        "AWS_REGION": bucket.region,
        "SEAMLINE_HOME": str(home),
    }


class Shop:
    """A pipeline of so many views in the bucket, and its writer."""

    def __init__(self, warehouse: str, definitions: Path, views: int) -> None:
        definitions.mkdir()
        (definitions / "shop.py").write_text(DEFINITION.replace("VIEWS", str(views)))
        self.pipeline: CompiledPipeline = load_pipeline(definitions, "shop")
        self.layout = Layout(parse_location(warehouse), "shop")
        self.control = ControlTable.ensure(self.layout)
        self.writer = Writer(self.layout, self.pipeline, 1)
        for view in self.pipeline.views:
            Table.ensure(self.layout.generations(view), generations_schema(view), partition_by=["interval"])
        self.at = 0

    def commit(self, before: Callable[[], object] = lambda: None) -> Spent:
        """Commit an epoch; return what the commit took, ``before`` which its files for the master were written."""
        values = [
            json.dumps({"customer": f"c{at % KEYS}", "amount": at, "sold_at": "2026-01-05T10:00:00"}).encode()
            for at in range(ROWS)
        ]
        config = next_task(self.writer)
        result = run(records(values, "sales", self.at, at=NOW).to_batches(), config)
        ranges = (OffsetRange(Lane("t", 0), self.at, self.at + ROWS),)
        self.at += ROWS
        epoch = Epoch(
            config.epoch,
            1,
            datetime.now(UTC),
            self.pipeline.record_version,
            ranges=ranges,
            accepted=result.accepted,
        )
        before()
        return Spent.of(lambda: self.writer.commit(epoch, result, self.writer.current))


class Reader:
    """A process that answers one question, as often as it is asked."""

    def __init__(self, warehouse: str, definitions: Path, home: Path, **options: float) -> None:
        command = [sys.executable, "-m", "benchmarks.store_shop", warehouse, str(definitions)]
        self.process = subprocess.Popen(
            [*command, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SEAMLINE_HOME": str(home)},
            cwd=ROOT,
        )
        assert self.process.stdout
        self.process.stdout.readline()

    def ask(self) -> tuple[Spent, int]:
        """Ask; return what it took, and how many events of one of KEYS are counted."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        wall, cpu, counted = json.loads(self.process.stdout.readline())
        return Spent(wall, cpu), counted

    def close(self) -> None:
        """End it."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def answer(warehouse: str, definitions: str, options: str) -> None:
    """Answer the question once a line of input."""
    more, found = json.loads(options), []
    print("ready", flush=True)
    for _ in sys.stdin:
        spent = Spent.of(
            lambda: found.append(
                read("shop.v0", "customer = 'c7'", warehouse=warehouse, definitions=Path(definitions), **more)
            )
        )
        print(json.dumps([spent.wall, spent.cpu, sum(found.pop()["n"].to_pylist())]), flush=True)


if __name__ == "__main__":
    answer(*sys.argv[1:])
