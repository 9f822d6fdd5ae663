"""What tables of rules add to an event's delay: python -m benchmarks.rules [--rate 5000] [--count 1000] [--rounds 3]

The example ad_campaigns at a steady rate, as `benchmarks.freshness` measures it, and beside it the same with a table of
rules whose matches feed a second view: a rule on each ad, all rules on the five kinds of ads, rules of which each has
a condition of its own, and a rule on each ad from a topic, one of which changes each second. All are run in each round,
in another order. Prints the delay of the first view, whose numbers no rule changes, and the cores of the pipeline:
medians of the rounds, and of what each round has added.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from statistics import median

import pyarrow.compute as pc

from benchmarks import ads
from benchmarks.freshness import Run, measured, new_topic
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.spine import broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.local.stack import StreamStack
from seamline.serve.read import read

KINDS = ("banner", "modal", "sponsored-search", "mail", "mobile")
BY_RULE = """
        View(
            "by_rule",
            keys=["rule"],
            window=Tumbling("10 seconds"),
            explode={"rule": "found"},
            measures={"n": count()},
        ),
"""
SORTS = {
    "none": "",
    "on each ad": "on={'of': 'ad_id'}, columns=['name', 'least INT'], where='ad_id % 50 >= r_least'",
    "on five kinds": "on={'of': 'ad_type'}, columns=['name', 'least INT'], where='ad_id % 50 = r_least'",
    "own conditions": "on={}, columns=['name'], condition='when'",
    "from a topic": "on={'of': 'ad_id'}, columns=['name', 'least INT'], where='ad_id % 50 >= r_least'",
}
"""How a record finds its rules, by the name that is printed."""


def make_rules(sort: str, count: int) -> Iterable[tuple[object, ...]]:
    """Make so many rules of a sort, the names of their columns first."""
    if sort == "own conditions":
        yield "name", "when"
        groups = max(count // 20, 1)
        for number in range(count):
            yield f"rule {number}", f"ad_id % {groups} = {number % groups} AND ad_id > -{number + 1}"
        return
    yield "of", "name", "least"
    for number in range(count):
        of = KINDS[number % len(KINDS)] if sort == "on five kinds" else number % ads.ADS
        yield of, f"rule {number}", number % 50


def define(sort: str, topic: str, table: Path) -> str:
    """Return the text of the pipeline with a table of rules of a sort."""
    text = ads.definition(topic, epoch=1_000_000)
    if not SORTS[sort]:
        return text
    if sort == "from a topic":
        return define_by_topic(text, topic)
    lookup = f"\n        Lookup('r', {str(table)!r}, {SORTS[sort]}, every='found'),"
    text = text.replace("lookups=[", f"lookups=[{lookup}", 1)
    return text.replace("    views=[", f"    views=[{BY_RULE}", 1)


def define_by_topic(text: str, topic: str) -> str:
    """Return the text of the pipeline with a second source, whose records are the rules of the first."""
    lookup = f"\n        Lookup('r', of='ruling', {SORTS['from a topic']}, every='found'),"
    ruling = (
        f"KafkaSource(name='ruling', topic='{topic}.rules', schema='of INT, name STRING, least INT', "
        "event_time='_kafka_timestamp')"
    )
    text = text.replace("source=KafkaSource(", "source=[KafkaSource(name='events',", 1)
    text = text.replace("    ),\n    lookups=[", f"    lookups=[{lookup}", 1)
    text = text.replace("    views=[", f"    ), {ruling}],\n    views=[{BY_RULE}", 1)
    return text.replace("keys=", "of='events', keys=")


@contextmanager
def changing_rules(connection: KafkaConnection, topic: str, rules: int) -> Iterator[None]:
    """Send all rules to a topic, and another one of them each second."""
    over = threading.Event()
    names, *rows = make_rules("from a topic", rules)

    def send(writer: RecordWriter, row: tuple[object, ...], least: int) -> None:
        value = {**dict(zip(map(str, names), row, strict=True)), "least": least}
        writer.send(topic, key=str(row[1]).encode(), value=json.dumps(value).encode(), partition=0)

    def change() -> None:
        with RecordWriter(connection) as writer:
            for number, row in enumerate(cycle(rows)):
                if over.wait(1):
                    return
                send(writer, row, number % 49)
                writer.flush()

    with TopicAdmin(connection) as admin:
        admin.create_topic(topic, 1, config={"cleanup.policy": "compact"})
        with RecordWriter(connection) as writer:
            for row in rows:
                send(writer, row, int(str(row[2])))
        changer = threading.Thread(target=change)
        changer.start()
        try:
            yield
        finally:
            over.set()
            changer.join()
            admin.delete_topic(topic)


def measure(connection: KafkaConnection, home: Path, sort: str, rate: int, rules: int) -> Run:
    """Measure the delay of the view that has no rule, beside a table of so many."""
    home.mkdir(parents=True)
    table = home / "rules.csv"
    if SORTS[sort]:
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(make_rules(sort, rules))
    with new_topic(connection, home.name) as topic, ExitStack() as beside:
        if sort == "from a topic":
            beside.enter_context(changing_rules(connection, f"{topic}.rules", rules))
        stack = StreamStack(home / "stack", define(sort, topic, table), connection, "ad_campaigns")
        stack.start()
        assert stack.driver
        os.environ.update(stack.settings)
        stack.wait("the query", (stack.home / "streams" / "ad_campaigns" / "driver.json").exists)

        def look() -> int:
            return pc.sum(read("ad_campaigns.views_by_campaign")["views"]).as_py() or 0

        try:
            return measured(sort, rate, "0 seconds", 1, connection, topic, stack.driver.pid, look)
        finally:
            stack.stop()


def main(argv: list[str]) -> int:
    """Measure each sort of rules in each round; print and keep the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", default="", help=f"of {', '.join(SORTS)}: some, with commas; always none, too"
    )
    asked = parser.parse_args(argv)
    if min(asked.rate, asked.count, asked.rounds) <= 0:
        parser.error("each number is above zero")
    wanted = {each.strip() for each in asked.only.split(",") if each.strip()} or {*SORTS}
    if unknown := wanted - {*SORTS}:
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(SORTS)}")
    sorts = [sort for sort in SORTS if sort == "none" or sort in wanted]
    print(machine(), flush=True)
    runs: dict[str, list[Run]] = {sort: [] for sort in sorts}
    with tempfile.TemporaryDirectory(prefix="rules") as folder, broker(Path(folder)) as connection:
        for number in range(asked.rounds):
            for sort in random.Random(number).sample(sorts, len(sorts)):
                home = Path(folder) / f"{number}-{sort.replace(' ', '-')}"
                runs[sort].append(measure(connection, home, sort, asked.rate, asked.count))
                print(f"round {number}: {format_runs(sort, runs[sort][-1:])}", flush=True)
    for sort, some in runs.items():
        added = median(run.p50 - none.p50 for run, none in zip(some, runs["none"], strict=True))
        print(f"{format_runs(sort, some)}, {1000 * added:+.0f} ms")
    kept = {sort: [asdict(run) for run in some] for sort, some in runs.items()}
    Results("rules").write({"machine": machine(), "rules": asked.count, "runs": kept})
    return 0


def format_runs(sort: str, runs: list[Run]) -> str:
    """Write the medians of some runs."""
    p50, p99, cores = (median(getattr(run, name) for run in runs) for name in ("p50", "p99", "cores"))
    return f"rules {sort:14}: p50 {p50:.3f} s, p99 {p99:.3f} s, {cores:.2f} cores"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
