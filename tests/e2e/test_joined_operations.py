"""What people do to a pipeline with a join, on real tables: a hole in one topic, a rollback, an index that is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from tests.e2e.joined_oracle import LATE, Held
from tests.e2e.joined_world import Example, eventually

from seamline.kafka.connections import KafkaConnection
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import PublishRefused
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import list_open_holes
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
NAME = "ad_attribution"
BUILT = ("2026-03-01T09:00:00Z", "2026-03-01T11:00:00Z")
CLICKS = "examples.clicks"
HOUR = BUILT[0]


@pytest.fixture
def example(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Example]:
    """Have the topics; nothing of it runs afterwards."""
    made = Example(tmp_path, kafka, NAME, BUILT)
    with made.at_work():
        yield made


def start(example: Example, *words: str) -> None:
    """Start the stream with a supervisor of its own, and wait until it has read everything."""
    example.seamline("stream", "start", NAME, "--here", *words)
    eventually("all to be read", example.is_read)


def stop(example: Example, *, robbed: bool) -> None:
    """Stop the stream, and take away its index of rows that may be joined."""
    example.seamline("stream", "stop", NAME)
    assert stop_stream(example.layout, timeout=120)
    index = example.home / "streams" / NAME / "joined"
    assert index.is_dir()
    if robbed:
        shutil.rmtree(index)


def without(held: Held, lost: dict[int, tuple[int, int]]) -> Held:
    """Leave out clicks by their places."""
    clicks = held[CLICKS]
    hidden = pd.Series(False, index=clicks.index)
    for partition, (first, last) in lost.items():
        hidden |= (clicks.partition == partition) & clicks.offset.between(first, last - 1)
    assert hidden.any()
    return {**held, CLICKS: clicks[~hidden]}


def test_a_join_is_right_through_a_hole_a_rollback_and_a_lost_index(example: Example) -> None:
    """Every record counts once, whichever way and however late it comes in, and nothing is in the index alone."""
    # An hour is read. Of the next one the clicks are passed over, and the index is gone.
    example.produce("--from", "2026-03-01T09:00", "--seconds", "3600", "--rate", "1")
    start(example)
    assert example.differences() == ""
    stop(example, robbed=True)
    first = example.ends(CLICKS)
    example.produce("--from", "2026-03-01T10:00", "--seconds", "3600", "--rate", "1")
    ends = example.ends(CLICKS)
    places = ",".join(f"{CLICKS}/{partition}:{end}" for partition, end in ends.items())
    start(example, "--from", places, "--reason", "fresh answers first")
    lost = {partition: (first[partition], end) for partition, end in ends.items()}
    assert example.differences(held=without(example.held(), lost)) == ""
    assert list_open_holes(example.epochs)
    example.drain()
    refused = example.command("run", NAME, "--dirty")
    assert refused.returncode == PublishRefused.exit_code, refused.stderr
    judged = Certificates.ensure(example.layout).of()
    red = {check.name for each in judged for check in each.checks if not check.passed}
    assert red == {"offsets without a hole"}
    assert not ManifestTable.ensure(example.layout).read().published

    # The hole is filled beside the live stream: pairs of its clicks with impressions that were read before.
    example.seamline("holes", "fill", NAME, "--reason", "the rest")
    eventually("the hole to be filled", lambda: not list_open_holes(example.epochs))
    assert EpochKind.AMEND in {epoch.kind for epoch in example.epochs}
    eventually("an edge", example.is_read)
    assert example.differences() == ""
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True) == ""

    # A late click; the hour is built again, and rolled back: the answer is the same, the batch layer's is as before.
    old = example.read("by_site", "batch")
    late = LATE[NAME](example.held(), BUILT)
    example.send(late.topic, late.row, late.at_ms)
    eventually("the late click to be read", example.is_read)
    assert example.differences() == ""
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True) == ""
    interval = example.pipeline.grid.of(pd.Timestamp(late.window).to_pydatetime()).id
    example.seamline("rollback", example.joined, interval, "--reason", "a trial")
    assert example.read("by_site", "batch").equals(old)
    assert example.differences() == ""
    example.explain(late)
    assert "  build " not in example.seamline("plan", NAME)
    stop(example, robbed=True)

    # Without an index, a click of an impression that was read two drivers ago.
    late = LATE[NAME](example.held(), BUILT)
    example.send(late.topic, late.row, late.at_ms)
    start(example)
    assert example.differences() == ""
    example.explain(late)
    example.seamline("rollback", example.joined, interval, "--release", "--reason", "it was one")
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True) == ""
    example.audit()
    stop(example, robbed=False)
