"""What a join costs: a backlog of impressions and clicks, drained with the join and without, and killed half-way.

    python -m benchmarks.joins [--records 2000000] [--rounds 1] [--kill] [--reach "1 hour"]
                               [--only joined,apart,spark,flink_only,flink_work]

Four impressions are followed by one click, of an impression of the last minutes, by keys of 36 characters; events are
in order of time, 20,000 a second of event time, over so many topics and partitions that tasks meet both. With the join
a view counts pairs, impressions, and those that were clicked; without it a view counts each source. DuckDB joins what
was written, and what was counted must be the same. Spark's stream-stream join takes turns, without an archive, and
Flink's interval join, without one and with one; both count pairs alone, and their bound is always an hour. ``--kill``
kills the driver three times on the way. Rates and CPU are of the steady part, as in ``benchmarks.drain``; memory is the
peak of the driver's own process, of its JVM, and of all.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.ads import PARTITIONS, bulk_producer, produce
from benchmarks.drain import progress, run_peer
from benchmarks.machine import machine, names
from benchmarks.peers.flink import flink
from benchmarks.peers.flink_counts import Counts
from benchmarks.peers.flink_jars import chosen
from benchmarks.peers.flink_sql import JoinWork
from benchmarks.sampler import EVERY, Sampler
from benchmarks.spine import broker
from benchmarks.wide_keys import Drained, drain_started, work_out
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.read.merged_read import read_merged_answer
from seamline.local.stack import StreamStack
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import parse_duration
from seamline.model.time.zone_clock import MICROSECOND

PER_SECOND = 20_000
CLICKED_WITHIN = 600
"""Seconds of event time after which an impression is clicked, at most."""
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
DEFINITION = """
from seamline import Batch, Join, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, count, sum

LATE = Watermark("1 minute", idle_after="1 minute")
ads = Pipeline(
    name="ads",
    source=[
        KafkaSource(name="shown", topic="{topic}.shown", schema="ad STRING, cost INT, at TIMESTAMP", event_time="at",
                    watermark=LATE),
        KafkaSource(name="clicked", topic="{topic}.clicked", schema="ad STRING, at TIMESTAMP", event_time="at",
                    watermark=LATE),
    ],
{joined}
    batch=Batch(interval="1 day", start="2026-01-01"),
    stream=Stream(trigger="0 seconds", max_offsets_per_epoch={most}, serve_every="1 hour", epoch_target="1 minute"),
)
"""
JOINED = """
    derive=[Join("paid", left="shown", right="clicked", on={{"ad": "ad"}}, after="{reach}")],
    views=[View("by_minute", of="paid", keys=[], window=Tumbling("1 minute"), measures={{
        "pairs": count(), "shown": count("left"), "hit": count("matched"), "cost": sum("shown_cost")}})],
"""
APART = """
    views=[View("by_minute", of="shown", keys=[], window=Tumbling("1 minute"),
                measures={"shown": count(), "cost": sum("cost")}),
           View("clicks", of="clicked", keys=[], window=Tumbling("1 minute"), measures={"n": count()})],
"""
WAYS = ("joined", "apart", "spark", "flink_only", "flink_work")
Event = tuple[str, int, int]
"""The key, the cost, and the microseconds since ``BEGIN``."""


def preload(connection: KafkaConnection, topic: str, count: int) -> tuple[list[Event], list[Event]]:
    """Write so many events to two topics; return the impressions and the clicks."""
    with TopicAdmin(connection) as admin:
        for name in ("shown", "clicked"):
            admin.create_topic(f"{topic}.{name}", PARTITIONS)
    dice, producer = random.Random(1), bulk_producer(connection)
    shown: list[Event] = []
    clicked: list[Event] = []
    for number in range(count):
        micros = number * 1_000_000 // PER_SECOND
        if number % 5 < 4:
            key, cost = f"{len(shown):036d}", number % 7
            shown.append((key, cost, micros))
            name, more = "shown", f',"cost":{cost}'
        else:
            back = dice.randrange(min(len(shown), CLICKED_WITHIN * PER_SECOND))
            key = shown[len(shown) - 1 - back][0]
            clicked.append((key, 0, micros))
            name, more = "clicked", ""
        at = BEGIN + timedelta(microseconds=micros)
        value = f'{{"ad":"{key}"{more},"at":"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}}'
        produce(producer, f"{topic}.{name}", value.encode(), number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return shown, clicked


def expected(shown: Sequence[Event], clicked: Sequence[Event], reach: int) -> tuple[int, int, int, int]:
    """Return the pairs, the impressions, those clicked, and the cost of pairs, by DuckDB's own join."""
    tables = {
        name: pa.table(
            {
                "ad": [each[0] for each in events],
                "cost": pa.array([each[1] for each in events], pa.int64()),
                "at": pa.array([each[2] for each in events], pa.int64()),
                "place": pa.array(range(len(events)), pa.int64()),
            }
        )
        for name, events in (("shown", shown), ("clicked", clicked))
    }
    with open_duckdb(None) as con:
        for name, table in tables.items():
            con.register(name, table)
        [found] = con.sql(
            "SELECT count(*), count(DISTINCT s.place), sum(s.cost)::BIGINT FROM shown s JOIN clicked c "
            f"ON s.ad = c.ad AND c.at - s.at BETWEEN 0 AND {reach}"
        ).fetchall()
    return found[0], len(shown), found[1], found[2]


def drain(
    home: Path, connection: KafkaConnection, topic: str, joined: str, count: int, kills: int
) -> tuple[Drained, StreamStack]:
    """Drain both topics, the driver killed so often on the way; return the figures and the stream, which has ended."""
    stack = StreamStack(
        home, DEFINITION.format(topic=topic, joined=joined, most=most_of_epoch(count)), connection, "ads"
    )
    stack.start()
    for kill in range(kills):
        wanted = count * (kill + 1) // (kills + 2)
        stack.wait("records to be read", lambda wanted=wanted: stack.offsets_read() >= wanted, 600, EVERY)  # type: ignore[misc]
        stack.kill()
        stack.start()
    return drain_started(stack, count), stack


def drain_spark(
    home: Path, connection: KafkaConnection, topic: str, count: int
) -> tuple[Drained, tuple[int, ...]]:
    """Let Spark's stream-stream join read both topics; return the figures, and its pairs and their cost."""
    ends, sampler = run_peer("spark_join", connection, topic, home, count, most_of_epoch(count))
    table = DeltaTable(str(home / "speed")).to_pyarrow_table()
    found = tuple(int(pc.sum(table[name]).as_py() or 0) for name in ("pairs", "cost"))
    return work_out(ends, sampler, count), found


def drain_flink(
    home: Path, connection: KafkaConnection, topic: str, count: int, *, archive: bool
) -> tuple[Drained, tuple[int, ...]]:
    """Let Flink's interval join read both topics; return the figures, and its pairs."""
    home.mkdir(parents=True)
    counts = f"{topic}.{home.name}"
    with TopicAdmin(connection) as admin:
        admin.create_topic(counts, PARTITIONS)
    work = JoinWork(connection.brokers, topic, counts, home / "archive" if archive else None)
    with flink(home) as engine, Sampler(engine.pid) as sampler:
        over, ends = progress(engine.submit(work), count)
        time.sleep(2 * EVERY)
    newest = Counts(connection, counts)
    newest.everything(600)
    newest.close()
    return work_out(ends, sampler, count, over), (newest.views,)


def most_of_epoch(count: int) -> int:
    """Return the most records of an epoch: a short drain has a steady part, too."""
    return min(200_000, count // 10)


def totals(stack: StreamStack) -> tuple[int, ...]:
    """Return the totals of the joined view's answer, in the order of ``expected``."""
    pipeline, request = stack.pipeline, ReadRequest(side=Side.MERGED)
    view = pipeline.view("by_minute")
    assert view
    table = read_merged_answer(pipeline, view, stack.layout, request).table
    return tuple(int(pc.sum(table[name]).as_py() or 0) for name in ("pairs", "shown", "hit", "cost"))


def main(argv: list[str] | None = None) -> int:
    """Drain in turns, and print medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joins", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--reach", default="1 hour")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--only", type=names(WAYS), default="")
    options = parser.parse_args(argv)
    kills, only = 3 if options.kill else 0, chosen(options.only, WAYS)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        shown, clicked = preload(connection, "ads", options.records)
        wanted = expected(shown, clicked, parse_duration(options.reach) // MICROSECOND)
        print(f"{len(shown):,} impressions, {len(clicked):,} clicks, {wanted[0]:,} pairs", flush=True)
        runs: dict[str, list[Drained]] = {name: [] for name in only}
        for turn in range(options.rounds):
            for name in only[:: -1 if turn % 2 else 1]:
                home = Path(folder) / f"{name}-{turn}"
                if name in ("joined", "apart"):
                    joined = JOINED.format(reach=options.reach) if name == "joined" else APART
                    found, stack = drain(home, connection, "ads", joined, options.records, kills)
                    counted, told = (totals(stack), wanted) if name == "joined" else ((), ())
                elif name == "spark":
                    found, counted = drain_spark(home, connection, "ads", options.records)
                    told = (wanted[0], wanted[3])
                else:
                    archive = name == "flink_work"
                    found, counted = drain_flink(home, connection, "ads", options.records, archive=archive)
                    told = wanted[:1]
                if counted != told:
                    print(f"{name} counted {counted}, there are {told}.", flush=True)
                    if name == "joined":
                        return 1
                runs[name].append(found)
                rmtree(home)
        for name, figures in runs.items():
            print(
                f"{name}: {median(each.rate for each in figures):,.0f} events/s, "
                f"{median(each.cpu for each in figures):.2f} CPU s per million, "
                f"driver {max(each.driver_mb for each in figures):,.0f} MB, "
                f"JVM {max(each.jvm_mb for each in figures):,.0f} MB, "
                f"all {max(each.peak_mb for each in figures):,.0f} MB",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
