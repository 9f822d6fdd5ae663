"""Another system asked about 1,000 rows a second, and Flink beside it: python -m benchmarks.asks [--rounds 3]

A system that takes 20 ms for each call (a timer: nothing else is measured with it), 64 calls at once.

*Freshness*: the example ad_campaigns at 3,000 events a second, of which a third are views, as `benchmarks.freshness`
measures it: without a question; with one about each view, seen in the view of all, which does not wait; and seen in a
view of the answered rows. *Throughput*: a topic that is full already. Seamline reads it, and asks; of Flink's
asynchronous I/O (AsyncDataStream, any order) the same is asked. Rows a second are from the broker's times of the first
and the last answer. All are run in each round, in another order; medians are printed. make bench-flink sets Flink up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import pyarrow.compute as pc
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from benchmarks import ads
from benchmarks.freshness import Run, measured, new_topic
from benchmarks.machine import machine
from benchmarks.peers.flink_asks import Asking, run_flink_asks
from benchmarks.results import Results
from benchmarks.sampler import Sampler
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.serve.read import read

NAME, QUESTION = "ad_campaigns", "scored"
FUNCTION = """
import asyncio

async def ask(requests):
    await asyncio.sleep(0.02)
    return [{"risk": 0.5} for _ in requests]
"""
ASK = """
    derive=[
        Ask(
            "scored",
            of="events",
            by="asked_by_timer:ask",
            request={"user": "user_id", "ad": "ad_id", "at": "event_time"},
            columns=["risk DOUBLE"],
            topic="TOPIC.answers",
        ),
    ],
"""
ASKED_VIEW = """
        View(
            "asked",
            of="scored",
            keys=["events_campaign"],
            window=Tumbling("10 seconds"),
            measures={"views": count(), "risk": sum("scored_risk")},
        ),
"""
WAYS = {
    "no question": "views_by_campaign",
    "beside it": "views_by_campaign",
    "answered rows": "asked",
}
"""The view that is looked at, by what is measured."""
AT_ONCE = 64


@dataclass(frozen=True)
class Throughput:
    """So many rows with answers a second, and the CPU seconds of a thousand."""

    rate: float
    cpu: float


def define(topic: str) -> str:
    """Return the text of the pipeline with a question about each view of an ad."""
    text = ads.definition(topic, epoch=1_000_000)
    text = text.replace("    Batch,\n", "    Ask,\n    Batch,\n").replace(
        "    max,\n", "    max,\n    sum,\n"
    )
    text = text.replace("source=KafkaSource(", 'source=[KafkaSource(\n        name="events",', 1)
    text = text.replace("    ),\n    lookups=[", "    lookups=[", 1)
    own = "    where=\"event_type = 'view'\",\n"
    text = text.replace(own, f"{own}    )],{ASK.replace('TOPIC', topic)}", 1)
    text = text.replace("keys=", 'of="events", keys=')
    return text.replace("    views=[", f"    views=[{ASKED_VIEW}", 1)


def open_stack(connection: KafkaConnection, home: Path, text: str) -> StreamStack:
    """Start a stream that can import the function that asks."""
    code = home / "code"
    code.mkdir(parents=True)
    (code / "asked_by_timer.py").write_text(FUNCTION)
    sys.path.insert(0, str(code))
    sys.modules.pop("asked_by_timer", None)
    path = os.pathsep.join([str(code), os.environ.get("PYTHONPATH", str(ads.ROOT / "include"))])
    stack = StreamStack(home / "stack", text, connection, NAME, env={"PYTHONPATH": path})
    stack.start()
    os.environ.update(stack.settings)
    stack.wait("the query", (stack.home / "streams" / NAME / "driver.json").exists)
    return stack


def measure_freshness(connection: KafkaConnection, home: Path, way: str, rate: int) -> Run:
    """Measure the delay of one view."""
    with new_topic(connection, home.name) as topic, answers_of(connection, topic):
        text = ads.definition(topic, epoch=1_000_000) if way == "no question" else define(topic)
        stack = open_stack(connection, home, text)
        assert stack.driver

        def look() -> int:
            return pc.sum(read(f"{NAME}.{WAYS[way]}")["views"]).as_py() or 0

        try:
            return measured(way, rate, "0 seconds", 1, connection, topic, stack.driver.pid, look)
        finally:
            stack.stop()
            sys.path.pop(0)


@contextmanager
def answers_of(connection: KafkaConnection, topic: str) -> Iterator[str]:
    """Make the topic of the answers about another one, whose times are the broker's."""
    name = f"{topic}.answers"
    with TopicAdmin(connection) as admin:
        admin.create_topic(name, 1, config={"message.timestamp.type": "LogAppendTime"})
        yield name
        admin.delete_topic(name)


def fill(connection: KafkaConnection, topic: str, rows: int) -> None:
    """Fill a topic with views of ads."""
    producer = Producer({"bootstrap.servers": connection.brokers, "linger.ms": 5})
    for number in range(rows):
        row = {
            "user_id": f"user {number}",
            "ad_id": number % ads.ADS,
            "event_type": "view",
            "event_time": f"2026-03-01T09:{number % 60:02d}:00Z",
        }
        producer.produce(topic, json.dumps(row).encode(), partition=number % ads.PARTITIONS)
        producer.poll(0)
    producer.flush()


def measure_throughput(connection: KafkaConnection, home: Path, rows: int) -> Throughput:
    """Measure how fast a stream answers a topic that is full."""
    with TopicAdmin(connection) as admin:
        admin.create_topic(home.name, ads.PARTITIONS)
    fill(connection, home.name, rows)
    with answers_of(connection, home.name) as answers:
        return measure_answers(connection, home, rows, answers)


def measure_answers(connection: KafkaConnection, home: Path, rows: int, answers: str) -> Throughput:
    """Measure how fast so many rows get their answers."""
    stack = open_stack(connection, home, define(home.name))
    assert stack.driver
    with Sampler(stack.driver.pid) as sampler:
        stack.wait("all answers", lambda: count_answered() >= rows, timeout=600, every=1.0)
    assert stack.stop() == 0
    sys.path.pop(0)
    moments = sorted(read_moments(connection, answers, rows))
    cpu = sampler.cpu(moments[0], moments[-1])
    return Throughput(len(moments) / (moments[-1] - moments[0]), cpu * 1000 / len(moments))


def read_moments(connection: KafkaConnection, topic: str, rows: int) -> Iterator[float]:
    """Read when the broker got each of so many answers, beside which there are the ends of transactions."""
    with TopicAdmin(connection) as admin:
        places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in admin.partitions(topic)]
    consumer = Consumer(
        {"bootstrap.servers": connection.brokers, "group.id": topic, "enable.auto.commit": False}
    )
    consumer.assign(places)
    while rows > 0:
        for message in consumer.consume(10_000, timeout=1):
            if error := message.error():
                raise KafkaException(error)
            rows -= 1
            yield message.timestamp()[1] / 1000
    consumer.close()


def count_answered() -> int:
    """Count the rows that the view of answered rows has."""
    return pc.sum(read(f"{NAME}.asked")["views"]).as_py() or 0


def measure_flink(connection: KafkaConnection, home: Path, rows: int) -> Throughput:
    """Measure how fast Flink answers a topic that is full."""
    with new_topic(connection, home.name) as topic:
        fill(connection, topic, rows)
        asking = Asking(["user_id", "ad_id", "event_time"], millis=20, at_once=AT_ONCE)
        found = run_flink_asks(connection, topic, f"{topic}.answers", home, asking)
        return Throughput(found.rate, found.cpu * 1000 / found.records)


def main(argv: list[str]) -> int:
    """Measure all in each round; print and keep the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asks", description=__doc__)
    parser.add_argument("--rate", type=int, default=3000)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-flink", action="store_true")
    asked = parser.parse_args(argv)
    print(machine(), flush=True)
    fresh: dict[str, list[Run]] = {way: [] for way in WAYS}
    measures = {"seamline": measure_throughput, **({} if asked.without_flink else {"flink": measure_flink})}
    through: dict[str, list[Throughput]] = {name: [] for name in measures}
    with tempfile.TemporaryDirectory(prefix="asks") as folder, broker(Path(folder)) as connection:
        for number in range(asked.rounds):
            for name in random.Random(number).sample([*WAYS, *measures], len(WAYS) + len(measures)):
                home = Path(folder) / f"{number}-{name.replace(' ', '-')}"
                if name in fresh:
                    fresh[name].append(measure_freshness(connection, home, name, asked.rate))
                else:
                    through[name].append(measures[name](connection, home, asked.rows))
                found = format_delays(fresh) if name in fresh else format_rates(through)
                print(f"round {number}: {found[name]}", flush=True)
    for line in (*format_delays(fresh).values(), *format_rates(through).values()):
        print(line)
    kept = {name: [asdict(run) for run in some] for name, some in (*fresh.items(), *through.items())}
    Results("asks").write({"machine": machine(), "rows": asked.rows, "runs": kept})
    return 0


def format_delays(found: Mapping[str, list[Run]]) -> dict[str, str]:
    """Write the medians of delays."""
    made = {}
    for way, runs in found.items():
        if runs:
            p50, p99, cores = (median(getattr(run, name) for run in runs) for name in ("p50", "p99", "cores"))
            made[way] = f"asks {way:14}: p50 {p50:.3f} s, p99 {p99:.3f} s, {cores:.2f} cores"
    return made


def format_rates(found: Mapping[str, list[Throughput]]) -> dict[str, str]:
    """Write the medians of rates."""
    return {
        name: f"asks {name:14}: {median(each.rate for each in some):,.0f} rows/s, "
        f"{median(each.cpu for each in some):.2f} CPU s a thousand"
        for name, some in found.items()
        if some
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
