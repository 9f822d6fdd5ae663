"""What duplicates within a horizon cost: a drain with an index of very many event ids, and its loading at a start.

    python -m benchmarks.known_ids [--ids 72000000] [--records 2000000] [--checkout DIR]

A master of ``--ids`` records is written as a stream would have written it, an hour at 20,000 a second, ids of twelve
bytes each. Then a driver starts on a topic that goes on from there, half of it with ids of that hour, which
``dedup_within`` of an hour finds. Figures: how long until the index is loaded and the first epoch is committed, how
fast the rest is drained, and the most memory that all processes have, shared pages counted once. Every id counts once,
or there are no figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.ads import PARTITIONS, bulk_producer, produce
from benchmarks.drain import STEADY_FROM
from benchmarks.machine import machine
from benchmarks.sampler import Sampler
from benchmarks.spine import ROOT, broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.arrow_types import master_schema
from seamline.lake.storage.data_files import name_epoch_file, write_data_file
from seamline.lake.storage.layout import Layout
from seamline.local.stack import StreamStack
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.spark.stream.epoch_writer import Writer

TOPIC = "ids"
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
PER_SECOND = 20_000
AT_ONCE = 2_000_000
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, count

ids = Pipeline(
    name="ids",
    source=KafkaSource(
        connection="kafka_default", topic="ids", schema="id STRING, gate INT, at TIMESTAMP", event_time="at",
        event_id=["id"], dedup_within="1 hour", watermark=Watermark(out_of_orderness="10 seconds"),
    ),
    views=[View("by_gate", keys=["gate"], window=Tumbling("1 minute"), measures={"events": count()})],
    batch=Batch(interval="1 day", start="2026-01-01"),
    stream=Stream(trigger="0 seconds", max_offsets_per_epoch=500_000, serve_every="1 hour", epoch_target="1 minute"),
)
"""


def event_of(number: int) -> tuple[str, int, datetime]:
    """Make an event: its id, gate and time."""
    return (
        f"{number * 2_654_435_761 % 2**40:012d}",
        number % 100,
        BEGIN + timedelta(seconds=number / PER_SECOND),
    )


def preload(connection: KafkaConnection, first: int, count: int) -> None:
    """Write events: half are new, from a number on, and half repeat an id of before."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
    producer = bulk_producer(connection)
    for number in range(count):
        new = first + number // 2
        of = new - 1 - number * 7_919 % (first + 1) if number % 2 else new
        id, gate, at = event_of(max(of, 0))
        value = json.dumps({"id": id, "gate": gate, "at": at.isoformat()})
        produce(producer, TOPIC, value.encode(), number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def write_master(stack: StreamStack, count: int) -> None:
    """Commit records of another topic's lane to the master, in epochs of two million."""
    writer = Writer(stack.layout, stack.pipeline, 1)
    schema, version = master_schema(stack.pipeline), stack.pipeline.record_version
    lane = Lane("ids of before", 0)
    for first in range(0, count, AT_ONCE):
        last = min(first + AT_ONCE, count)
        number = writer.take_number()
        with open_duckdb(None) as con:
            con.register("blank", schema.empty_table())
            moment = f"make_timestamptz({int(BEGIN.timestamp() * 1e6)} + (n * 1000000 // {PER_SECOND}))"
            rows = (
                f"SELECT printf('%012d', (n::HUGEINT * 2654435761 % {2**40})::BIGINT) AS id, (n % 100)::INT AS gate, "
                f'{moment} AS "at", "at" AS _event_time, "at" AS _kafka_timestamp, \'before\' AS _topic, '
                f"'{lane.topic_id}' AS _topic_id, 0::INT AS _partition, n AS _offset, {number}::BIGINT AS _epoch, "
                f"'{version}' AS _record_version, true AS _selected, false AS _duplicate "
                f"FROM range({first}, {last}) AS r(n)"
            )
            found = con.sql(f"SELECT * FROM blank UNION ALL BY NAME {rows}").to_arrow_table()
        table = found.select(schema.names).cast(schema)
        file = write_data_file(table, writer.master.table.root, name_epoch_file(1, number, number))
        at = BEGIN + timedelta(seconds=(last - 1) / PER_SECOND)
        whole = Epoch(
            number,
            1,
            datetime.now(UTC),
            version,
            accepted={stack.pipeline.grid.of(at).id: last - first},
            max_event_time={lane: at},
            watermark=at - timedelta(seconds=10),
            edge=True,
        )
        writer.commit(whole, KernelResult(master=[file]), writer.current)


def main(argv: list[str] | None = None) -> int:
    """Load, start, drain, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.known_ids", description=__doc__)
    parser.add_argument("--ids", type=int, default=72_000_000)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--checkout", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        stack = StreamStack(
            Path(folder) / "home",
            DEFINITION,
            connection,
            "ids",
            env={"PYTHONPATH": str(options.checkout / "include")},
        )
        write_master(stack, options.ids)
        preload(connection, options.ids, options.records)
        began = time.time()
        stack.start()
        assert stack.driver
        with Sampler(stack.driver.pid, pages_once=True) as sampler:
            stack.drain(options.records, 1_800, 0.5)
        stack.stop()
        print(report(stack.layout, sampler, began, options.ids, options.records), flush=True)
        for line in stack.log.read_text().splitlines():
            if "known again" in line:
                print(line)
    return 0


def report(layout: Layout, sampler: Sampler, began: float, ids: int, records: int) -> str:
    """Work out the figures; refuse those of answers that count an id twice, or not at all."""
    rows, ends = 0, []
    for epoch in Ledger.ensure(layout).read():
        if epoch.ranges and epoch.committed_at.timestamp() > began:
            rows += sum(map(len, epoch.ranges))
            ends.append((epoch.committed_at.timestamp(), rows))
    with open_duckdb(None) as con:
        paths = DeltaTable(str(layout.table("master"))).file_uris()
        counted, different = con.execute(
            "SELECT count(*) FILTER (_selected), count(DISTINCT id) FROM read_parquet(?, union_by_name = true)",
            [paths],
        ).fetchone() or (0, 0)
    if not counted == different:
        raise SystemExit(f"{counted:,} records count, of {different:,} ids.")
    at, read = next(each for each in ends if each[1] >= STEADY_FROM * records)
    end = ends[-1][0]
    return (
        f"{ids:,} ids: first epoch after {ends[0][0] - began:.1f} s, {(records - read) / (end - at):,.0f} events/s, "
        f"{sampler.cpu(at, end) / ((records - read) / 1e6):.2f} CPU s per million, {sampler.once_mb:,.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
