"""The stream job on a real broker, Spark and Delta: killed at every commit point, robbed of its checkpoint, exact."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.rig.checkpoints import lose, restore
from tests.faults.rig.commit_points import Left
from tests.faults.rig.oracle import require_ledger, require_replay, require_rising, require_whole
from tests.faults.rig.processes import end_all, require_none
from tests.faults.rig.reader import Reader
from tests.faults.rig.trial import Trial, eventually
from tests.faults.rig.workload import Log, Workload, definition, send

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.runtime.failpoints import EPOCH

TOPIC = "faults.points"
PATIENCE = 300
BEFORE = {
    "files": "deleted",
    "slices": "emptied",
    "quarantine": "truncated",
    "ledger": "flipped",
}
"""What befalls the checkpoint before the run that dies at a point; before the last run it is an old copy."""
BEHIND_THE_DATA, BEFORE_IT = "master", "files"


@pytest.fixture
def stack(kafka: KafkaConnection, tmp_path: Path) -> Iterator[StreamStack]:
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 3)
        yield StreamStack(tmp_path, definition("points", TOPIC), kafka, "points")
        end_all(tmp_path)
        admin.delete_topic(TOPIC)


def dies(stack: StreamStack, point: str) -> Left:
    """Run the driver until it kills itself and its JVM at a point of its second epoch; say what it left."""
    stack.start(SEAMLINE_FAIL=f"{point}:2")
    assert stack.driver
    code = stack.driver.wait(PATIENCE)
    assert code == -signal.SIGKILL, stack.log.read_text(errors="replace")[-4000:]
    require_none(stack.home)
    return Left.of(stack)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param((BEHIND_THE_DATA, BEFORE_IT), id="two"),
        pytest.param(EPOCH, id="all", marks=pytest.mark.faults),
    ],
)
def test_killed_at_every_commit_point_and_robbed_of_its_checkpoint_nothing_is_lost_or_twice(
    stack: StreamStack, kafka: KafkaConnection, points: tuple[str, ...]
) -> None:
    """The position is the master's: after any crash and with any checkpoint every answer is the log's replay."""
    trial, log, work = Trial("commit points", 2024), Log(), Workload(2024)
    checkpoints, kept = stack.home / "streams" / stack.name, stack.home / "old"
    with TopicAdmin(kafka) as admin:
        topic_id = admin.topic_id(TOPIC)
    send(kafka, TOPIC, topic_id, work, 1000 * len(points), log)
    with Reader("points.by_producer", stack.layout.warehouse, stack.home / "pipelines") as reader:
        for point in points:
            if point in BEFORE:
                trial.prove(f"checkpoint {BEFORE[point]}", lose(checkpoints, BEFORE[point], trial.chance))
            left = dies(stack, point)
            trial.prove(f"killed at {point}, which left {left}", left.is_of(point))
            if point == points[0]:
                shutil.copytree(checkpoints, kept)
        trial.prove("an old checkpoint restored", restore(checkpoints, kept))
        assert stack.offsets_read() < len(log)
        stack.start()
        stack.drain(len(log), timeout=PATIENCE)
        eventually("an answer to the end", lambda: reader.samples[-1].epoch >= stack.epoch())
        assert stack.stop() == 0
    assert require_none(stack.home) < 5
    trial.close()
    require_whole(stack.layout, log)
    epochs = require_ledger(stack.layout)
    require_rising(reader.samples)
    require_replay(log, epochs, reader.samples)
    assert len({epoch.token for epoch in epochs}) == len(points) + 1
    assert len(reader.samples) > len(points)


@pytest.mark.faults
def test_a_checkpoint_that_looks_whole_and_is_not_does_not_keep_the_stream_down(
    stack: StreamStack, kafka: KafkaConnection
) -> None:
    """After a clean stop the newest batch is planned, done and where the master ends; the rest may still be broken."""
    trial, log, work = Trial("checkpoints", 2025), Log(), Workload(2025)
    checkpoints = stack.home / "streams" / stack.name
    with TopicAdmin(kafka) as admin:
        topic_id = admin.topic_id(TOPIC)
    for how in ("", "unnamed", "truncated", "flipped"):
        if how:
            trial.prove(f"checkpoint {how}", lose(checkpoints, how, trial.chance))
        send(kafka, TOPIC, topic_id, work, 200, log)
        stack.start()
        stack.drain(len(log), timeout=PATIENCE)
        assert stack.stop() == 0
    trial.close()
    require_whole(stack.layout, log)
