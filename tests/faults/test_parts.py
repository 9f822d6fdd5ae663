"""Workers and executors die in the stages of epochs in parts, drivers at any time; caches are lost, torn and stale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable
from tests.faults.rig.executors import STAGES, WIDE
from tests.faults.rig.trial import Trial

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.layout import Layout
from seamline.local.stack import StreamStack
from seamline.plan.stream.epoch_parts import LEAST_STATES

DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name="wide",
    source=KafkaSource(
        topic={topic!r}, schema="id BIGINT, at TIMESTAMP", event_time="at", event_id=["id"], dedup_within="1 day",
        watermark=Watermark("10 minutes"),
    ),
    views=[View("by_id", keys=["id"], window=Tumbling("1 day"), measures={{"n": count()}})],
    stream=Stream(trigger="100 milliseconds", max_offsets_per_epoch={limit}, epoch_target="5 minutes", parts={parts}),
    batch=Batch("1 day", "2024-01-01"),
)
"""
pytestmark = pytest.mark.faults
LIMIT = LEAST_STATES * 6 // 5
PARTITIONS = 3
PATIENCE = 600.0


class Wide:
    """A stream of as many keys as ids, a tenth of them sent twice or more."""

    def __init__(self, home: Path, kafka: KafkaConnection, trial: Trial) -> None:
        self.kafka, self.trial, self.topic = kafka, trial, f"faults.parts.{home.name}"
        self.stack = StreamStack(home, self.text(2), kafka, "wide")
        self.sent: Counter[int] = Counter()
        with TopicAdmin(kafka) as admin:
            admin.create_topic(self.topic, PARTITIONS)

    def text(self, parts: int) -> str:
        """Write the definition."""
        return DEFINITION.format(topic=self.topic, limit=LIMIT, parts=parts)

    def rescale(self, parts: int) -> None:
        """Have another number of parts from the next start on."""
        (self.stack.home / "pipelines" / "wide.py").write_text(self.text(parts))

    def send(self, count: int) -> None:
        """Send records, of which a tenth have ids that were sent before, perhaps long ago."""
        new = len(self.sent)
        with RecordWriter(self.kafka, linger_ms=20) as writer:
            for number in range(count):
                old = number % 10 == 9 and new
                id = self.trial.chance.randrange(new) if old else new
                new += not old
                self.sent[id] += 1
                value = json.dumps({"id": id, "at": f"2024-01-05T{id % 24:02d}:00:00Z"}).encode()
                writer.send(self.topic, key=b"", value=value, partition=number % PARTITIONS)

    def drain(self) -> None:
        """Read everything."""
        self.stack.drain(self.sent.total(), PATIENCE)

    def judge(self) -> None:
        """Compare master and slices with what was sent: every record is there, and every id counts once."""
        rows = DeltaTable(str(self.stack.layout.table("master"))).to_pyarrow_table(
            columns=["id", "_selected"]
        )
        assert Counter(rows["id"].to_pylist()) == self.sent
        counting = Counter(rows.filter(rows["_selected"])["id"].to_pylist())
        assert counting == dict.fromkeys(self.sent, 1)
        held = {epoch.number for epoch in Ledger.ensure(self.stack.layout).read()}
        [view] = self.stack.pipeline.views
        slices = DeltaTable(str(self.stack.layout.slices(view))).to_pyarrow_table(
            columns=["id", "rows", "to_epoch"]
        )
        counted: Counter[int] = Counter()
        for id, count, epoch in zip(
            *(slices[name].to_pylist() for name in ("id", "rows", "to_epoch")), strict=True
        ):
            if epoch in held:
                counted[id] += count
        assert counted == counting

    def count_files_of_epochs(self) -> Counter[int]:
        """Count the files of slices by the epoch that they are of."""
        [view] = self.stack.pipeline.views
        found = DeltaTable(str(self.stack.layout.slices(view))).get_add_actions(flatten=True)
        return Counter(found["max.to_epoch"].to_pylist())

    @property
    def index(self) -> Path:
        """The folder of the index of ids."""
        [found] = self.stack.home.rglob("ids")
        return found


@pytest.fixture
def wide(tmp_path: Path, kafka: KafkaConnection, trial: Trial) -> Iterator[Wide]:
    """A stream of its own."""
    made = Wide(tmp_path, kafka, trial)
    yield made
    if made.stack.driver and made.stack.driver.poll() is None:
        made.stack.kill()


@pytest.mark.parametrize("point", ["half", "part"])
def test_workers_die_in_each_stage(point: str, wide: Wide, trial: Trial) -> None:
    """Their epoch is tried again, under one token, and nothing counts twice."""
    wide.send(4 * LIMIT)
    token = wide.stack.start(SEAMLINE_FAIL=f"{point}:6:worker")
    wide.drain()
    assert wide.stack.stop() == 0
    epochs = Ledger.ensure(wide.stack.layout).read()
    assert {epoch.token for epoch in epochs} == {token}
    numbers = [epoch.number for epoch in epochs if epoch.ranges]
    trial.prove(f"workers killed at {point}", numbers != [*range(len(numbers))])
    trial.prove("epochs in parts", max(wide.count_files_of_epochs().values()) == 2)
    wide.judge()


def test_a_driver_dies_and_comes_back_with_other_parts(wide: Wide, trial: Trial) -> None:
    """Its index is made from the master, each time in another number of parts."""
    for parts in (2, 3, 1):
        wide.rescale(parts)
        wide.send(LIMIT + 10_000)
        before = wide.stack.epoch()
        wide.stack.start(SEAMLINE_FAIL=f"{['files', 'slices', 'master'][parts - 1]}:2:all")
        assert wide.stack.driver
        wide.stack.driver.wait(PATIENCE)
        trial.prove(f"driver of {parts} parts killed", wide.stack.epoch() > before)
        wide.stack.start()
        wide.drain()
        wide.stack.kill()
    wide.judge()


def spoil(folder: Path, change: Callable[[Path], object]) -> int:
    """Change the states of all parts; tell how many there were."""
    states = [*folder.rglob("state.json")]
    for each in states:
        change(each)
    return len(states)


def older(state: Path) -> None:
    """Make a state that of an epoch before, whose successor it does not have."""
    found = json.loads(state.read_text())
    epoch = int(found["epoch"])
    state.write_text(json.dumps({**found, "after": str(epoch - 2), "epoch": str(epoch - 1)}))


@pytest.mark.parametrize(
    "harm",
    [
        lambda state: state.unlink(),
        lambda state: state.write_text(state.read_text()[:40]),
        lambda state: [each.write_bytes(b"") for each in state.parent.glob("*.high")],
        lambda state: shutil.move(state.parent, state.parent.with_name("elsewhere")),
        older,
    ],
    ids=["lost", "torn", "torn run", "moved", "of another epoch"],
)
def test_an_index_is_made_again_in_a_running_stream(
    harm: Callable[[Path], object], wide: Wide, trial: Trial
) -> None:
    """The next survey finds that a part is not where it should be."""
    wide.send(20_000)
    wide.stack.start()
    wide.drain()
    trial.prove("parts spoiled", spoil(wide.index, harm) == 2)
    wide.send(20_000)
    wide.drain()
    assert wide.stack.stop() == 0
    trial.prove("index made again", "made again" in wide.stack.log.read_text())
    wide.judge()


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """A Spark whose workers keep what is theirs below the test's folder."""
    home = tmp_path / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    return home


def test_executors_die_in_each_stage_of_epochs_in_parts(
    spark_home: Path, tmp_path: Path, trial: Trial
) -> None:
    """What they had left goes with them; a part that moves finds the index, or is made again where that is lost."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.rig.executors", str(tmp_path)],
        env={**os.environ, "SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "executors.log").write_text(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    for stage in STAGES:
        trial.prove(f"executor killed, {stage}", stage in said["struck"])
    # One that is killed while it starts was never there.
    trial.prove("executors lost", done.stderr.count("Command exited with code 137") > len(STAGES))
    # More often where Spark has given up making them.
    trial.prove("lost parts made again", done.stderr.count("are made again from the master") >= 2)
    print(
        *(line for line in done.stderr.splitlines() if "made again" in line or "Lost executor" in line),
        sep="\n",
    )
    print(f"{len(said['failures'])} epochs were tried again: {said['failures']}")
    judge_executors(
        Layout(tmp_path / "warehouse", WIDE.name), Counter({int(id): n for id, n in said["sent"].items()})
    )


def judge_executors(layout: Layout, sent: Counter[int]) -> None:
    """Compare master and slices with what was sent: every record is there, and every id counts once."""
    rows = DeltaTable(str(layout.table("master"))).to_pyarrow_table(columns=["id", "_selected"])
    assert Counter(rows["id"].to_pylist()) == sent
    assert Counter(rows.filter(rows["_selected"])["id"].to_pylist()) == dict.fromkeys(sent, 1)
    held = {epoch.number for epoch in Ledger.ensure(layout).read()}
    [view] = WIDE.views
    slices = DeltaTable(str(layout.slices(view))).to_pyarrow_table(columns=["id", "rows", "to_epoch"])
    counted: Counter[int] = Counter()
    for row in slices.to_pylist():
        counted[row["id"]] += row["rows"] if row["to_epoch"] in held else 0
    assert counted == dict.fromkeys(sent, 1)
