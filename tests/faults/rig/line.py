"""One pipeline from its producers to its readers, under a supervisor or without, and all that must hold of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
from kafka import KafkaConsumer, TopicPartition
from tests.faults.rig.oracle import require_ledger, require_replay, require_rising, require_whole
from tests.faults.rig.processes import end_all, require_none
from tests.faults.rig.reader import Reader
from tests.faults.rig.trial import eventually
from tests.faults.rig.workload import Log, Sent, Workload, definition, send, write, writer

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.local.stack import StreamStack
from seamline.model.errors import SeamlineError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import OffsetRange
from seamline.runtime.failpoints import Family
from seamline.supervisor.supervisor_heartbeat import Heartbeat

PATIENCE = 300.0


class Line:
    """A topic, its workload, the stream that reads it, and a reader; ``close`` leaves no process behind."""

    def __init__(
        self,
        home: Path,
        kafka: KafkaConnection,
        seed: int,
        *,
        name: str = "line",
        trigger: str = "100 milliseconds",
        limit: int = 300,
        config: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.kafka, self.topic = kafka, f"faults.{name}.{seed}.{os.getpid()}.{time.monotonic_ns()}"
        text = definition(name, self.topic, trigger=trigger, limit=limit)
        self.stack = StreamStack(home, text, kafka, name, env=env or {})
        self.work, self.log = Workload(seed), Log()
        with TopicAdmin(kafka) as admin:
            admin.create_topic(self.topic, self.work.partitions, config=config)
            self.topic_id = admin.topic_id(self.topic)
        self.reader = Reader(f"{name}.by_producer", self.stack.layout.warehouse, home / "pipelines")
        self.doubtful = False
        self.supervisors: list[subprocess.Popen[bytes]] = []

    @property
    def home(self) -> Path:
        """Where everything of it is."""
        return self.stack.home

    @property
    def folder(self) -> Path:
        """Where its checkpoints, heartbeats and, under a supervisor, its logs are."""
        return self.home / "streams" / self.stack.name

    def send(self, count: int) -> None:
        """Send so many records."""
        send(self.kafka, self.topic, self.topic_id, self.work, count, self.log)

    @contextmanager
    def flowing(self, per_second: int = 100) -> Iterator[None]:
        """Go on sending for as long as the block runs; what the broker does not take is in doubt until ``truth``."""
        halt = threading.Event()

        def flow() -> None:
            out = None
            while not halt.wait(1.0):
                try:
                    out = out or writer(self.kafka, self.topic_id, self.log)
                    write(out, self.topic, self.work.take(per_second))
                except (SeamlineError, OSError):
                    self.doubtful, out = True, None
            if out:
                out.close()

        thread = threading.Thread(target=flow, name="producer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            halt.set()
            thread.join(300)
            assert not thread.is_alive()

    def supervise(self, **env: str) -> subprocess.Popen[bytes]:
        """Want the stream up and start a supervisor, as the reconcile task does."""
        control = ControlTable.ensure(self.stack.layout)
        if control.read().desired is not Desired.RUNNING:
            control.want(Desired.RUNNING, actor="test", reason="a trial", now=datetime.now(UTC))
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "supervisor.log").open("ab") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "seamline.supervisor", self.stack.name],
                env={**self.stack.settings, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.supervisors.append(child)
        return child

    def seamline(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours on it."""
        command = [sys.executable, "-m", "seamline.cli", *words]
        return subprocess.run(command, env=self.stack.settings, capture_output=True, text=True, check=False)

    def heartbeat(self) -> Heartbeat | None:
        """What the supervisor last said."""
        return Heartbeat.read(self.home, self.stack.name)

    def family(self) -> Family:
        """The processes of the driver that its supervisor has up now, its workers among them."""

        def found() -> Family | None:
            beat = self.heartbeat()
            if not beat or not beat.driver or not beat.driver.alive():
                return None
            with suppress(psutil.NoSuchProcess):
                family = Family.of_driver(beat.driver.pid)
                return family if family.jvm and family.workers else None
            return None

        return eventually("a driver with its workers", found, PATIENCE)

    def await_beyond(self, epoch: int, seconds: float = PATIENCE) -> float:
        """Wait until an epoch above that one is held, and give how many seconds that took."""
        began = time.monotonic()
        eventually(
            f"an epoch above {epoch}\n{self.said()}", lambda: self.stack.epoch() > epoch, seconds, every=0.05
        )
        return time.monotonic() - began

    def said(self) -> str:
        """The last words of the driver, wherever they are."""
        logs = [file for file in (self.folder / "driver.log", self.stack.log) if file.exists()]
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in logs)

    def drained(self, seconds: float = PATIENCE) -> None:
        """Wait until every record that Kafka holds is read."""
        with TopicAdmin(self.kafka) as admin:
            ends = sum(admin.end_offsets(self.topic).values())
        eventually(f"{ends} offsets to be read", lambda: self.stack.offsets_read() >= ends, seconds)

    def stop(self, seconds: float = 120.0) -> None:
        """Stop the stream as people do, and wait until its supervisors have ended well."""
        done = self.seamline("stream", "stop", self.stack.name, "--reason", "the trial is over")
        assert done.returncode == 0, done.stderr
        for child in self.supervisors:
            child.wait(seconds)
        assert self.supervisors[-1].returncode == 0, self.said()

    def truth(self) -> Log:
        """Read the topic to its end: acknowledged records are all there, and some of those in doubt."""
        known = {sent.value: sent for sent in self.log.values()}
        found = {place: known.get(value) or sent_as(value) for place, value in held(self).items()}
        lost = [place for place in self.log if place not in found]
        assert not lost, f"Kafka has lost {len(lost)} acknowledged records: {lost[:5]}"
        self.log = found
        return found

    def judge(self, *, lost: tuple[OffsetRange, ...] = (), truth: bool = True) -> list[Epoch]:
        """Require everything that must hold of a stream that has read all; give its epochs."""
        log = self.truth() if truth else self.log
        require_whole(self.stack.layout, log, lost=lost, unbroken=not self.doubtful)
        epochs = require_ledger(self.stack.layout)
        if self.reader.thread.ident is not None:
            if self.reader.failure:
                raise self.reader.failure
            last = self.reader.ask()
            assert last is not None
            assert last.epoch == epochs[-1].number
            require_rising(self.reader.samples)
            require_replay(log, epochs, self.reader.samples)
        return epochs

    def close(self) -> None:
        """End whatever is left."""
        self.reader.halt.set()
        end_all(self.home)
        for child in [*self.supervisors, *([self.stack.driver] if self.stack.driver else [])]:
            child.wait(30)

    def require_clean(self) -> float:
        """Nothing of it runs any more; give how long that took."""
        return require_none(self.home)

    def kill(self, pid: int | None, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one process of it."""
        assert pid is not None
        os.kill(pid, sign)


def held(line: Line) -> dict[tuple[str, int, int], bytes | None]:
    """Read what Kafka holds of a topic now, as a reader of committed records sees it."""
    with TopicAdmin(line.kafka) as admin:
        ends = {TopicPartition(line.topic, part): end for part, end in admin.end_offsets(line.topic).items()}
    consumer = KafkaConsumer(
        **line.kafka.for_client(),
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_partition_fetch_bytes=8_000_000,
    )
    found: dict[tuple[str, int, int], bytes | None] = {}
    try:
        consumer.assign(list(ends))
        consumer.seek_to_beginning()
        until = time.monotonic() + 120
        while any(consumer.position(place) < end for place, end in ends.items()):
            assert time.monotonic() < until, "Kafka gives no more, and has not given the topic to its end"
            for records in consumer.poll(timeout_ms=500).values():
                until = time.monotonic() + 120
                found |= {(line.topic_id, each.partition, each.offset): each.value for each in records}
    finally:
        consumer.close()
    return found


def sent_as(value: bytes | None) -> Sent:
    """Read a record whose acknowledgement never came."""
    try:
        row = json.loads(value or b"")
        at = datetime.fromisoformat(row["at"])
        if row["seq"] >= 0 and isinstance(row["producer"], str) and at.year == 2024:
            return Sent(row["producer"], row["seq"], at, value)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return Sent("", -1, None, value)
