"""How fast the changes of a table are counted: a Changelog's view, and Flink's aggregate over upsert-kafka, in one run.

    python -m benchmarks.changes [--records 1000000] [--keys 100000] [--rounds 3] [--only upserts,events,flink]

Topics of four partitions are loaded once with changes of accounts, each key in one partition: rows as they are after
the change (``upserts``), and the same in envelopes as Debezium writes them, without schemas (``events``). Each system
counts accounts and adds up balances by country, in turn, in a process of its own. Flink reads the rows by upsert-kafka
and writes what it counts by it, and keeps nothing else; here each record is archived as well. Rates are of the part
after a quarter of the records, as in ``benchmarks.drain``. Every answer is compared with the table of the generator.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

from benchmarks.ads import PARTITIONS, bulk_producer
from benchmarks.drain import PATIENCE, WATCH, Drain, Run, measured, progress, run_in_turns
from benchmarks.machine import machine, names
from benchmarks.peers.flink import flink
from benchmarks.peers.flink_counts import Counts
from benchmarks.peers.flink_jars import chosen
from benchmarks.results import Results
from benchmarks.sampler import EVERY, Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.local.stack import StreamStack
from seamline.model.errors import SetupError
from seamline.serve.read import read

COUNTRIES = [f"c{n:02d}" for n in range(50)]
Answer = dict[str, tuple[int, int]]
"""Accounts and their balances, by country."""
SOURCES = {
    "upserts": 'schema="id BIGINT NOT NULL, country STRING, balance BIGINT, version BIGINT", order="version"',
    "events": 'schema="id BIGINT NOT NULL, country STRING, balance BIGINT, __deleted BOOLEAN, __source_lsn BIGINT", '
    'order="__source_lsn", format=Debezium()',
}
DEFINITION = """
from seamline import *

bank = Pipeline(
    name="bank",
    source=[
        KafkaSource(
            name="changes", topic="{topic}", {source}, key=["id"], event_time="_kafka_timestamp",
            watermark=Watermark("10 minutes", idle_after="1 minute"),
        )
    ],
    derive=[Changelog("accounts", of="changes")],
    views=[
        View("by_country", of="accounts", keys=["country"], window=Global(),
             measures={{"n": count(), "total": sum("balance")}}),
    ],
    stream=Stream(trigger="0 seconds", max_offsets_per_epoch={epoch}),
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01"),
)
"""
TABLES = (
    """
CREATE TABLE accounts (id BIGINT, country STRING, balance BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{topic}',
  'key.format' = 'json', 'value.format' = 'json', 'properties.register.consumer.metrics' = 'false',
  'scan.bounded.mode' = 'latest-offset'
)""",
    """
CREATE TABLE counts (
  country STRING, `views` BIGINT, total BIGINT, PRIMARY KEY (country) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{counts}',
  'key.format' = 'json', 'value.format' = 'json', 'properties.register.producer.metrics' = 'false'
)""",
)
COUNT = "INSERT INTO counts SELECT country, COUNT(*), SUM(balance) FROM accounts GROUP BY country"


@dataclass(frozen=True)
class TableWork:
    """One job that ends at the offsets there are when it starts: a table of upserts, counted by country."""

    brokers: str
    topic: str
    counts: str

    def tables(self) -> list[str]:
        """Define the table that is read and the one that is written."""
        given = {"brokers": self.brokers, "topic": self.topic, "counts": self.counts}
        return [each.format(**given) for each in TABLES]

    def job(self) -> str:
        """Count."""
        return COUNT


class TableCounts(Counts):
    """What Flink has counted by country."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        super().__init__(connection, topic)
        self.answer: Answer = {}

    def take(self, value: bytes) -> None:
        """Let a value take the place of the one before; none takes its place where a country has no account."""
        self.messages += 1
        if value:
            row = json.loads(value)
            self.answer[row["country"]] = (row["views"], row["total"])


def preload(connection: KafkaConnection, topic: str, count: int, keys: int) -> Answer:
    """Load the topics, and return the table after all changes, counted."""
    dice, rows = random.Random(f"changes {count} {keys}"), dict[int, tuple[str, int]]()
    producer = bulk_producer(connection)
    with TopicAdmin(connection) as admin:
        for kind in SOURCES:
            admin.create_topic(f"{topic}.{kind}", PARTITIONS)
    for number in range(count):
        id = number if number < keys else dice.randrange(keys)
        rows[id] = dice.choice(COUNTRIES), dice.randrange(1_000_000)
        row = {"id": id, "country": rows[id][0], "balance": rows[id][1]}
        key = json.dumps({"id": id}).encode()
        send(producer, f"{topic}.upserts", key, {**row, "version": number}, id % PARTITIONS)
        send(producer, f"{topic}.events", key, envelope(row, number), id % PARTITIONS)
    producer.flush()
    found: Answer = {}
    for country, balance in rows.values():
        n, total = found.get(country, (0, 0))
        found[country] = n + 1, total + balance
    return found


def envelope(row: dict[str, object], number: int) -> dict[str, object]:
    """Make the event of a change, with what Debezium's connector to PostgreSQL tells of it."""
    at = 1_796_000_000_000 + number
    source = {
        "version": "3.6.1.Final", "connector": "postgresql", "name": "bank", "ts_ms": at, "snapshot": "false",
        "db": "bank", "sequence": f'["{number}","{number}"]', "ts_us": at * 1000, "ts_ns": at * 1_000_000,
        "schema": "public", "table": "accounts", "txId": number, "lsn": number, "xmin": None,
    }  # fmt: skip
    moments = {"ts_ms": at, "ts_us": at * 1000, "ts_ns": at * 1_000_000}
    return {"before": None, "after": row, "source": source, "transaction": None, "op": "u", **moments}


def send(producer: Producer, topic: str, key: bytes, value: dict[str, object], partition: int) -> None:
    """Hand a record to the client, waiting while its buffer is full."""
    text = json.dumps(value, separators=(",", ":")).encode()
    while True:
        try:
            producer.produce(topic, text, key, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)


def on_seamline(kind: str) -> Callable[[Drain, Path, Answer], Run]:
    """Make the drain of a changelog over rows or events."""

    def run(drain: Drain, home: Path, answer: Answer) -> Run:
        topic = f"{drain.topic}.{kind}"
        text = DEFINITION.format(topic=topic, source=SOURCES[kind], epoch=drain.epoch)
        stack = StreamStack(home, text, drain.connection, "bank")
        began = time.time()
        stack.start()
        assert stack.driver
        with Sampler(stack.driver.pid) as sampler:
            stack.drain(drain.count, PATIENCE, WATCH)
        stack.stop()
        os.environ.update(stack.settings)
        rows = read("bank.by_country").to_pylist()
        require({row["country"]: (row["n"], row["total"]) for row in rows}, answer, kind)
        read_, ends = 0, []
        for epoch in Ledger.ensure(stack.layout).read():
            if epoch.ranges:
                read_ += sum(map(len, epoch.ranges))
                ends.append((epoch.committed_at.timestamp(), read_))
        return measured(kind, drain, began, ends, sampler)

    return run


def on_flink(drain: Drain, home: Path, answer: Answer) -> Run:
    """Let Flink count the rows."""
    home.mkdir(parents=True)
    counts = f"{drain.topic}.{home.name}"
    with TopicAdmin(drain.connection) as admin:
        admin.create_topic(counts, PARTITIONS)
    began = time.time()
    with flink(home) as engine, Sampler(engine.pid) as sampler:
        work = TableWork(drain.connection.brokers, f"{drain.topic}.upserts", counts)
        over, ends = progress(engine.submit(work), drain.count)
        time.sleep(2 * EVERY)
    newest = TableCounts(drain.connection, counts)
    newest.everything(PATIENCE)
    newest.close()
    require(newest.answer, answer, "flink")
    return measured("flink", drain, began, ends, sampler, over)


def require(found: Answer, answer: Answer, system: str) -> None:
    """Refuse figures of a system that has counted wrongly."""
    if found != answer:
        raise SystemExit(f"{system} has another table: {sorted(found.items() ^ answer.items())[:6]}")


SYSTEMS: dict[str, Callable[[Drain, Path, Answer], Run]] = {
    "upserts": on_seamline("upserts"),
    "events": on_seamline("events"),
    "flink": on_flink,
}


def main(argv: list[str]) -> int:
    """Load the topics, let the systems read them in turn, and print medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=names(SYSTEMS), default="")
    options = parser.parse_args(argv)
    wanted = chosen(options.only, SYSTEMS)
    if not wanted:
        return SetupError.exit_code
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        answer = preload(connection, "bank", options.records, options.keys)
        drain = Drain(connection, "bank", options.records, {})
        runs = run_in_turns(
            wanted, options.rounds, Path(folder), lambda name, home: SYSTEMS[name](drain, home, answer)
        )
    print()
    for name in wanted:
        mine = [run for run in runs if run.system == name]
        print(
            f"{name}: median of {len(mine)}: {median(r.steady_rate for r in mine):,.0f} changes/s steady, "
            f"{median(r.whole_rate for r in mine):,.0f} whole, "
            f"{median(r.whole_cpu_per_million for r in mine):.1f} CPU s per million"
        )
    Results("changes").write({"machine": machine(), "runs": [asdict(run) for run in runs]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
