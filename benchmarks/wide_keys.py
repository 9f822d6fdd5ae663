"""What many keys cost: a backlog of events of few keys, and of as many keys as there are events.

    python -m benchmarks.wide_keys [--records 3000000] [--keys 1000,3000000] [--rounds 1] [--only seamline,stateful]
                                   [--checkout DIR]

A topic of four partitions is loaded with events of 236 bytes for each number of keys, which go round; a view counts and
adds up by key and hour. Rates and CPU are of the steady part, as in ``benchmarks.drain``. Memory is the peak of the
driver's own process and of its JVM, and of all together. Stateful Spark takes turns, without an archive, and with its
states in RocksDB; so does another ``--checkout``. What each has counted is compared with what was written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from statistics import median

from deltalake import DeltaTable

from benchmarks.ads import PARTITIONS, bulk_producer, produce
from benchmarks.drain import STEADY_FROM, run_peer
from benchmarks.machine import machine, names
from benchmarks.sampler import EVERY, Sampler
from benchmarks.spine import ROOT, broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.ledger import Ledger
from seamline.local.stack import StreamStack

EPOCH = 500_000
BYTES = 236
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, count, sum

wide = Pipeline(
    name="wide",
    source=KafkaSource(
        connection="kafka_default", topic="{topic}", schema="k STRING, n INT, at TIMESTAMP", event_time="at",
        watermark=Watermark(out_of_orderness="10 seconds"),
    ),
    views=[View("by_key", keys=["k"], window=Tumbling("1 hour"), measures={{"events": count(), "total": sum("n")}})],
    batch=Batch(interval="1 day", start="2026-01-01"),
    stream=Stream(trigger="0 seconds", max_offsets_per_epoch={epoch}, serve_every="1 hour", epoch_target="1 minute"),
)
"""


@dataclass(frozen=True)
class Drained:
    """One drain: events a second, CPU seconds per million of the steady part; MB at their most."""

    rate: float
    cpu: float
    driver_mb: float
    jvm_mb: float
    peak_mb: float


def preload(connection: KafkaConnection, topic: str, count: int, keys: int) -> None:
    """Write so many events, each of one of so many keys."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(topic, PARTITIONS)
    producer = bulk_producer(connection)
    filler = "x" * (BYTES - 90)
    for number in range(count):
        # Neighbours are of different partitions, and a key is in all of them.
        key = number * 7_919 % keys
        at = f"2026-01-05T00:{number * 60 // count:02d}:00Z"
        value = f'{{"k":"{key:036d}","n":{number % 100},"at":"{at}","x":"{filler}"}}'
        produce(producer, topic, value.encode(), number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def drain(
    home: Path, connection: KafkaConnection, topic: str, count: int, keys: int, checkout: Path
) -> Drained:
    """Drain a topic by the code of a checkout."""
    text = DEFINITION.format(topic=topic, epoch=most_of_epoch(count))
    stack = StreamStack(home, text, connection, "wide", env={"PYTHONPATH": str(checkout / "include")})
    stack.start()
    found = drain_started(stack, count)
    require_all_counted(
        DeltaTable(str(stack.layout.slices(stack.pipeline.views[0]))), "sum(rows)", count, keys
    )
    return found


def drain_started(stack: StreamStack, count: int) -> Drained:
    """Let a stream that has started read so many records, and end it; return the figures of the steady part."""
    assert stack.driver
    with Sampler(stack.driver.pid) as sampler:
        stack.drain(count, 1_800, 0.5)
        time.sleep(2 * EVERY)
    stack.stop()
    rows, ends = 0, []
    for epoch in Ledger.ensure(stack.layout).read():
        if epoch.ranges:
            rows += sum(map(len, epoch.ranges))
            ends.append((epoch.committed_at.timestamp(), rows))
    return work_out(ends, sampler, count)


def drain_stateful(home: Path, connection: KafkaConnection, topic: str, count: int, keys: int) -> Drained:
    """Drain a topic by stateful Spark."""
    ends, sampler = run_peer("spark_wide", connection, topic, home, count, most_of_epoch(count))
    require_all_counted(DeltaTable(home / "speed"), "max(events)", count, keys)
    return work_out(ends, sampler, count)


def most_of_epoch(count: int) -> int:
    """Return the most records of an epoch: a short drain has a steady part, too."""
    return min(EPOCH, -(-count // 6)) + PARTITIONS


def work_out(ends: Sequence[tuple[float, int]], sampler: Sampler, count: int, over: float = 0.0) -> Drained:
    """Work out the figures from the ends of epochs; ``over`` is when all was written, if later than the last."""
    at, rows = next(each for each in ends if each[1] >= STEADY_FROM * count)
    end, million = ends[-1][0], (count - rows) / 1e6
    return Drained(
        (count - rows) / max(end - at, EVERY),
        sampler.cpu(at, over or end) / million,
        sampler.driver_mb,
        sampler.jvm_mb,
        sampler.peak_mb,
    )


def require_all_counted(table: DeltaTable, events: str, count: int, keys: int) -> None:
    """Refuse figures of a table that does not count each event once; ``events`` are those of a key."""
    with open_duckdb() as con:
        found = con.execute(
            f"SELECT sum(n)::BIGINT, count(*) FROM (SELECT k, {events} AS n FROM read_parquet(?) GROUP BY k)",
            [table.file_uris()],
        ).fetchone()
    if found != (count, keys):
        raise SystemExit(f"{found} events and keys were counted, there are {count:,} and {keys:,}.")


def main(argv: list[str] | None = None) -> int:
    """Drain in turns, and print medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide_keys", description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--keys", default="1000,3000000")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", type=names(("seamline", "stateful")), default="")
    parser.add_argument("--checkout", type=Path)
    options = parser.parse_args(argv)
    systems: dict[str, Callable[..., Drained]] = {
        "seamline": partial(drain, checkout=ROOT),
        "stateful": drain_stateful,
    }
    only = options.only.split(",") if options.only else list(systems)
    if options.checkout:
        systems["other"], only = partial(drain, checkout=options.checkout), [*only, "other"]
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        for keys in map(int, options.keys.split(",")):
            topic = f"wide.{keys}"
            preload(connection, topic, options.records, keys)
            runs: dict[str, list[Drained]] = {name: [] for name in only}
            for turn in range(options.rounds):
                for name in [*only[turn % len(only) :], *only[: turn % len(only)]]:
                    home = Path(folder) / f"{keys}-{turn}-{name}"
                    runs[name].append(systems[name](home, connection, topic, options.records, keys))
                    rmtree(home)
            for name, found in runs.items():
                print(
                    f"{keys:>10,} keys, {name}: {median(each.rate for each in found):,.0f} events/s, "
                    f"{median(each.cpu for each in found):.2f} CPU s per million, "
                    f"driver {max(each.driver_mb for each in found):,.0f} MB, "
                    f"JVM {max(each.jvm_mb for each in found):,.0f} MB, "
                    f"all {max(each.peak_mb for each in found):,.0f} MB",
                    flush=True,
                )
            with TopicAdmin(connection) as admin:
                admin.delete_topic(topic)
    return 0


if __name__ == "__main__":
    sys.exit(main())
