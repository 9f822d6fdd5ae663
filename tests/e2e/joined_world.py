"""A shipped example of a join over real topics: what its topics hold, and what is answered, compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from kafka import KafkaConsumer, TopicPartition
from tests.e2e.joined_oracle import VIEWS, Held, Late, View
from tests.e2e.world import ROOT
from tests.faults.rig.processes import end_all

from seamline import read
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates
from seamline.local.generators import GENERATORS, Record
from seamline.local.sending import send_records
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.time.intervals import Interval, parse_moment

WITHIN = 300.0
PARTITIONS = 4


def eventually(what: str, look: Callable[[], Any], *, meanwhile: Callable[[], None] = lambda: None) -> Any:
    """Wait for something and give it."""
    until = time.monotonic() + WITHIN
    while not (found := look()):
        meanwhile()
        assert time.monotonic() < until, what
        time.sleep(0.5)
    return found


class Example:
    """One example: its definition in a folder, its topics, and its tables; ``built`` is what closes of it."""

    def __init__(
        self,
        home: Path,
        kafka: KafkaConnection,
        name: str,
        built: tuple[str, str],
        views: Mapping[str, View] | None = None,
    ) -> None:
        self.home, self.kafka, self.name = home, kafka, name
        self.views = views or VIEWS[name]
        self.joined = f"{name}.{next(iter(self.views))}"
        self.start, self.end = built
        self.topics = GENERATORS[name].topics
        self.definitions, self.layout = home / "pipelines", Layout(home / "warehouse", name)
        self.definitions.mkdir(exist_ok=True)
        text = (ROOT / "include" / "examples" / f"{name}.py").read_text()
        # What is a minute of silence where somebody watches is two seconds here.
        text = text.replace('idle_after="1 minute"', 'idle_after="2 seconds"')
        (self.definitions / f"{name}.py").write_text(text)

    @property
    def settings(self) -> dict[str, str]:
        """What its processes are told."""
        broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": self.kafka.brokers}}
        return {
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(broker),
            "GX_ANALYTICS_ENABLED": "false",
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(self.home),
            "SEAMLINE_PIPELINES": str(self.definitions),
            "SEAMLINE_WAREHOUSE": str(self.layout.warehouse),
        }

    def seamline(self, *words: str) -> str:
        """Run a command of ours, and require that it went well; return what it said."""
        done = self.command(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours, however it ends."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        env = {**os.environ, **self.settings}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def find_driver(self) -> int | None:
        """Return the driver's process, None while there is none."""
        file = self.home / "streams" / self.name / "driver.json"
        return json.loads(file.read_text())["pid"] if file.exists() else None

    def kill_driver(self) -> None:
        """Kill the driver, which its supervisor starts again; nothing that it kept in memory is left."""
        pid = eventually("a driver", self.find_driver)
        os.kill(pid, signal.SIGKILL)
        eventually("another driver", lambda: self.find_driver() not in (None, pid))

    @contextmanager
    def at_work(self) -> Iterator[Example]:
        """Have its topics in the block; then nothing of it runs, and they are gone."""
        self.create_topics()
        yield self
        end_all(self.home)
        self.delete_topics()

    def create_topics(self) -> None:
        """Create its topics, as its page says."""
        for topic in self.topics:
            self.seamline("topics", "create", topic, "--partitions", str(PARTITIONS))

    def delete_topics(self) -> None:
        """Delete its topics: another test may want the same."""
        with TopicAdmin(self.kafka) as admin:
            for topic in self.topics:
                admin.delete_topic(topic)

    def produce(self, *words: str) -> None:
        """Send what its generator makes, as fast as Kafka takes it."""
        self.seamline("produce", self.name, *words, "--seed", "7", "--speedup", "1000000")

    def send(self, topic: str, row: Mapping[str, Any], at_ms: int) -> None:
        """Send one record."""
        send_records(self.kafka, topic, [Record(at_ms, None, json.dumps(row).encode(), topic=topic)])

    @property
    def pipeline(self) -> CompiledPipeline:
        """The compiled definition."""
        return load_catalog(self.definitions).pipeline(self.name)

    @property
    def intervals(self) -> set[str]:
        """The intervals that close."""
        span = Interval(parse_moment(self.start), parse_moment(self.end))
        return {each.id for each in self.pipeline.grid.within(span)}

    @property
    def epochs(self) -> list[Epoch]:
        """The ledger; empty before there is one."""
        return Ledger.ensure(self.layout).read() if Ledger.exists(self.layout) else []

    def ends(self, topic: str) -> dict[int, int]:
        """Ask the broker where the partitions of a topic end."""
        with TopicAdmin(self.kafka) as admin:
            return dict(admin.end_offsets(topic))

    def held(self) -> Held:
        """Read the topics: what of them is JSON, with its place."""
        return {topic: pd.DataFrame(read_topic(self.kafka, topic, self.ends(topic))) for topic in self.topics}

    def read(self, view: str, side: str = "merged", **options: Any) -> pd.DataFrame:
        """Ask as a reader does."""
        return read(
            f"{self.name}.{view}",
            warehouse=self.layout.warehouse,
            definitions=self.definitions,
            format="pandas",
            side=side,
            **options,
        )

    def differences(self, side: str = "merged", *, closed: bool = False, held: Held | None = None) -> str:
        """Say where the answers of a side are not what the topics hold, all or what has closed; "" if nowhere."""
        options = {"start": self.start, "end": self.end} if closed else {}
        held = held or self.held()
        return "".join(
            compare(cut(expected(held), **options), self.read(view, side, **options), f"{view} {side}")
            for view, expected in self.views.items()
        )

    def is_read(self) -> bool:
        """Return whether the stream has read the topics to their ends, and an edge is there."""
        epochs = self.epochs
        read_ = sum(
            len(each) for epoch in epochs if epoch.kind is not EpochKind.AMEND for each in epoch.ranges
        )
        return (
            bool(epochs) and epochs[-1].edge and read_ == sum(sum(self.ends(t).values()) for t in self.topics)
        )

    def has_passed(self, moment: str) -> bool:
        """Return whether the watermark is there, and what it was seen at is an edge."""
        last = next(reversed(self.epochs), None)
        return bool(last and last.edge and last.watermark and last.watermark >= parse_moment(moment))

    def drain(self) -> None:
        """Declare that nothing more comes, and wait until the last interval has closed."""
        self.seamline("drain", self.name, "--reason", "no more records")
        eventually("the last interval to close", lambda: self.has_passed(self.end))

    def require_certified(self) -> None:
        """Every interval of every view has a certificate, and none of its checks has failed."""
        for view in self.pipeline.views:
            own = Certificates.ensure(self.layout).of(view=view.id)
            assert {each.interval.id for each in own} == self.intervals
            assert [each for each in own if not each.passed] == []

    def explain(self, late: Late) -> str:
        """Take the joined number apart; the command ends badly where the parts do not give the whole."""
        said = self.seamline("explain", self.joined, "--key", late.key, "--window", late.window)
        assert "  yes  the parts merged give the answer" in said
        return said

    def audit(self) -> None:
        """Compare everything with everything."""
        assert "nothing is wrong" in self.seamline("audit", self.name)


def read_topic(kafka: KafkaConnection, topic: str, ends: Mapping[int, int]) -> list[dict[str, Any]]:
    """Read a topic to its end by Kafka's own client: what is JSON, and where it is."""
    places = {TopicPartition(topic, part): end for part, end in ends.items()}
    consumer = KafkaConsumer(**kafka.for_client(), enable_auto_commit=False)
    found = []
    try:
        consumer.assign(list(places))
        consumer.seek_to_beginning()
        while any(consumer.position(place) < end for place, end in places.items()):
            for records in consumer.poll(timeout_ms=500).values():
                for each in records:
                    try:
                        row = json.loads(each.value)
                    except ValueError:
                        continue
                    found.append(row | {"partition": each.partition, "offset": each.offset})
    finally:
        consumer.close()
    return found


def cut(rows: pd.DataFrame, start: str = "", end: str = "") -> pd.DataFrame:
    """Keep the windows of a range."""
    kept = rows[rows.window_start >= pd.Timestamp(start)] if start else rows
    return kept[kept.window_start < pd.Timestamp(end)] if end else kept


def compare(expected: pd.DataFrame, found: pd.DataFrame, what: str) -> str:
    """Say how two answers differ, row by row; "" if they do not."""
    one, other = (tell(each[list(expected.columns)]) for each in (expected, found))
    if one == other:
        return ""
    wrong = sorted(set(one) ^ set(other))
    return f"{what}: {len(one)} rows expected, {len(other)} found; not in both: {wrong[:6]}\n"


def tell(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return rows as text, in one order; a NULL is one whatever its type is."""
    told = rows.assign(window_start=pd.to_datetime(rows.window_start, utc=True))
    return sorted(tuple("" if pd.isna(value) else plain(value) for value in row) for row in told.values)


def plain(value: Any) -> str:
    """Write a number as a number, whether it is an integer, a decimal or a double."""
    return str(value) if isinstance(value, str | pd.Timestamp) else f"{float(value):.12g}"
