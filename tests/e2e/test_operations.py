"""What people do with a stream, by their commands, on a real broker, Spark and Delta under its supervisor."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable

from seamline.cli import main
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.local.stack import StreamStack
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import is_ledger_contiguous, list_open_holes
from seamline.serve.read import read
from seamline.supervisor.outside import stop_stream
from seamline.supervisor.supervisor_heartbeat import Heartbeat

TOPIC, NAME, FORK = "ops.orders", "ops", "trial"
DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="ops",
    source=KafkaSource(
        topic="ops.orders",
        schema="id INT NOT NULL, placed_at TIMESTAMP",
        event_time="placed_at",
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    views=[
        View("orders", keys=[], window=Tumbling("1 hour"), measures={"n": count()}),
        View("fragile", keys=[], window=Tumbling("1 hour"),
             measures={"n": count(), "ids": own("id", by="fragile:Total")}),
    ],
    stream=Stream(trigger="100 milliseconds", max_offsets_per_epoch=150, stuck_after="8 seconds"),
    batch=Batch("1 day", "2024-01-01"),
)
"""
FRAGILE = """
from pathlib import Path

class Total:
    state = "total BIGINT"
    result = "BIGINT"

    def prepare(self, value):
        if (Path(__file__).parent / "broken").exists():
            raise RuntimeError("the price list is gone")
        return (value,)

    def plus(self, left, right):
        return (left[0] + right[0],)

    def present(self, state):
        return state[0]
"""
PATIENCE = 300
PARTITIONS = 2


class Shop:
    """The topic, and the stream that reads it."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        self.kafka = kafka
        path = os.pathsep.join(filter(None, [str(home), os.environ.get("PYTHONPATH", "")]))
        self.stack = StreamStack(home, DEFINITION, kafka, NAME, env={"PYTHONPATH": path})
        (home / "fragile.py").write_text(FRAGILE)
        self.layout = self.stack.layout
        self.sent = 0

    def send(self, count: int) -> None:
        """Send so many records, in turn to the partitions."""
        with RecordWriter(self.kafka) as writer:
            for number in range(self.sent, self.sent + count):
                row = {"id": number, "placed_at": f"2024-01-01T{number % 24:02}:00:00Z"}
                writer.send(TOPIC, value=json.dumps(row).encode(), partition=number % PARTITIONS)
        self.sent += count

    def held(self, name: str = NAME) -> Counter[tuple[int, int]]:
        """Count the coordinates in a pipeline's master."""
        master = Layout(self.layout.warehouse, name).table("master")
        rows = DeltaTable(str(master)).to_pyarrow_table(columns=["_partition", "_offset"])
        return Counter(zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True))

    @property
    def whole(self) -> Counter[tuple[int, int]]:
        """Each coordinate once."""
        return Counter({(number % PARTITIONS, number // PARTITIONS): 1 for number in range(self.sent)})

    def counted(self, view: str = "orders") -> int:
        """Read how many orders a view counts."""
        found = read(
            f"ops.{view}", warehouse=self.layout.warehouse, definitions=self.stack.home / "pipelines"
        )
        return sum(found["n"].to_pylist())

    def token(self) -> int:
        """Return the token of the lease."""
        lease = ControlTable.ensure(self.layout).read().lease
        return lease.token if lease else -1

    def beat(self) -> dict[str, Any]:
        """Return the driver's heartbeat; nothing before the first."""
        try:
            return self.stack.heartbeat()
        except FileNotFoundError:
            return {}

    def up(self, token: int) -> bool:
        """Return whether the driver under a token, or a newer one, reads."""
        found = self.beat()
        return found.get("token", -1) >= token and found["state"] == "running"


@pytest.fixture
def shop(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path, kafka)
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in made.stack.settings.items():
                patch.setenv(name, value)
            patch.syspath_prepend(str(made.stack.home))
            yield made
            for name in (NAME, FORK):
                stop_stream(Layout(made.layout.warehouse, name), timeout=60)
        admin.delete_topic(TOPIC)


def eventually(shop: Shop, what: str, done: Callable[[], bool]) -> None:
    """Wait for a condition; what the driver said is shown if it does not come about."""
    until = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > until:
            said = [
                log.read_text(errors="replace")[-3000:]
                for log in (shop.stack.home / "streams").glob("*/*.log")
            ]
            pytest.fail(f"waited for {what}\n" + "\n".join(said))
        time.sleep(0.1)


@pytest.mark.parametrize(
    "stuck", [pytest.param(True, id="stuck", marks=pytest.mark.faults), pytest.param(False, id="in short")]
)
def test_a_stream_is_operated_by_its_commands(
    shop: Shop, capsys: pytest.CaptureFixture[str], stuck: bool
) -> None:
    """One life: begun at the end, filled, paused, saved, stuck, started anew, stopped; each record counts once.

    In short it has one driver: it does not get stuck, and its fork is not started.
    """
    begun_at_the_end(shop, capsys)
    paused(shop)
    without_a_view(shop, capsys)
    saved(shop, capsys)
    if stuck:
        unstuck(shop)
        restarted(shop)
    restored(shop, capsys, "monday, tuesday" if stuck else "monday")
    forked(shop, capsys)
    if stuck:
        read_on(shop)


def begun_at_the_end(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """What is passed over is a hole, which is filled beside the live stream."""
    shop.send(1000)
    assert main(["stream", "start", NAME, "--from", "latest", "--then-backfill-gap", "--here"]) == 0
    told = capsys.readouterr().out
    assert "1000 offsets are passed over" in told
    assert "offsets 0..499" in told
    eventually(shop, "the driver", lambda: shop.up(0))
    shop.send(100)
    eventually(shop, "everything", lambda: shop.held().total() == shop.sent)
    assert shop.held() == shop.whole
    epochs = known_epochs(shop.layout)
    assert [epoch.kind for epoch in epochs[:PARTITIONS]] == [EpochKind.HOLE] * PARTITIONS
    amends = [epoch for epoch in epochs if epoch.kind is EpochKind.AMEND]
    assert sum(epoch.rows for epoch in amends) == 1000
    assert all(epoch.rows <= 150 for epoch in amends)
    assert is_ledger_contiguous(epochs)
    assert list_open_holes(epochs) == []
    assert shop.counted() == shop.sent
    assert main(["holes", "list", NAME]) == 0
    assert capsys.readouterr().out == ""


def paused(shop: Shop) -> None:
    """The driver stays up and reads nothing."""
    first = shop.token()
    assert main(["stream", "pause", NAME, "--reason", "the shop is closed"]) == 0
    eventually(shop, "the pause", lambda: shop.beat()["state"] == "paused")
    shop.send(50)
    eventually(shop, "its lag", lambda: sum(shop.beat()["lag"].values()) == 50)
    assert shop.held().total() == shop.sent - 50
    assert main(["stream", "start", NAME]) == 0
    eventually(shop, "the rest", lambda: shop.held().total() == shop.sent)
    assert shop.token() == first, "the driver is the same"


def without_a_view(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """One whose measure fails is set aside with its error, the other goes on; mended, it catches up by itself."""
    first, broken = shop.token(), shop.stack.home / "broken"
    broken.touch()
    shop.send(20)
    eventually(shop, "the rest", lambda: shop.held().total() == shop.sent)
    assert (shop.counted(), shop.counted("fragile")) == (shop.sent, shop.sent - 20)
    capsys.readouterr()
    eventually(shop, "its error", lambda: shop.beat()["behind"])
    assert main(["stream", "list", NAME]) == 0
    listed = capsys.readouterr().out
    assert "fragile" in listed
    assert "the price list is gone" in listed
    broken.unlink()
    eventually(shop, "the view", lambda: shop.counted("fragile") == shop.sent)
    assert shop.token() == first, "it did so while live"


def saved(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """By name, once; what comes after it is not part of it."""
    assert main(["stream", "savepoint", NAME, "monday", "--reason", "before the sale"]) == 0
    assert main(["stream", "savepoint", NAME, "monday"]) == 5
    capsys.readouterr()
    assert main(["stream", "savepoint", NAME]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("monday: epoch ")
    assert "before the sale" in listed
    shop.send(50)
    eventually(shop, "the rest", lambda: shop.held().total() == shop.sent)


def unstuck(shop: Shop) -> None:
    """Its JVM stands still, its process lives. That it does not get on is seen, and it is started anew."""
    first, beat = shop.token(), Heartbeat.read(shop.stack.home, NAME)
    assert beat and beat.driver
    [java] = [
        each for each in psutil.Process(beat.driver.pid).children(recursive=True) if each.name() == "java"
    ]
    os.kill(java.pid, signal.SIGSTOP)
    shop.send(50)
    eventually(shop, "a new driver", lambda: shop.up(first + 1))
    eventually(shop, "the rest", lambda: shop.held().total() == shop.sent)
    again = Heartbeat.read(shop.stack.home, NAME)
    assert again and again.strikes == 1
    assert "stuck" in again.last_error
    assert not java.is_running() or java.status() == psutil.STATUS_ZOMBIE


def restarted(shop: Shop) -> None:
    """By a command: another token, no strike."""
    second = shop.token()
    assert main(["stream", "restart", NAME, "--upgrade-mode", "savepoint", "--savepoint", "tuesday"]) == 0
    eventually(shop, "another driver", lambda: shop.up(second + 1))
    shop.send(50)
    eventually(shop, "the rest", lambda: shop.held().total() == shop.sent)
    renewed = Heartbeat.read(shop.stack.home, NAME)
    assert renewed and renewed.strikes == 0


def restored(shop: Shop, capsys: pytest.CaptureFixture[str], points: str) -> None:
    """Stopped; what was served at a savepoint is served still, and nothing is read twice."""
    assert main(["stream", "stop", NAME]) == 0
    eventually(shop, "the stop", lambda: shop.token() == -1)
    capsys.readouterr()
    assert main(["stream", "restore", NAME, "monday"]) == 0
    assert "is served, as then" in capsys.readouterr().out
    assert main(["stream", "restore", NAME, "sunday"]) == 4
    assert f"available: {points}" in capsys.readouterr().err
    assert shop.held() == shop.whole
    assert shop.counted() == shop.sent
    assert main(["stream", "start", NAME, "--from", "0:10"]) == 5
    assert "has been read to offset" in capsys.readouterr().err


def forked(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Another pipeline begins at a savepoint."""
    definition = DEFINITION.replace('name="ops"', f'name="{FORK}"')
    (shop.stack.home / "pipelines" / f"{FORK}.py").write_text(definition)
    assert main(["stream", "fork", NAME, "monday", "--as", FORK]) == 0
    assert "begins with 1170 rows of ops" in capsys.readouterr().out
    assert shop.held(FORK).total() == 1170


def read_on(shop: Shop) -> None:
    """The fork reads what came after by itself, and no other is put over it."""
    assert main(["stream", "start", FORK, "--here"]) == 0
    eventually(shop, "the rest", lambda: shop.held(FORK).total() == shop.sent)
    assert shop.held(FORK) == shop.whole
    assert main(["stream", "fork", NAME, "monday", "--as", FORK]) == 5
