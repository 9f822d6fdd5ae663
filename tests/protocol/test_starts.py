"""Where a start reads from: the master's end, whatever Spark's checkpoint says, of the topics that were read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.shop import sales_pipeline

from seamline.kafka.admin import TopicMark
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.storage.layout import Layout
from seamline.model.errors import KafkaUnavailable, OffsetGap, RecordsReplaced, TopicRecreated
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.epoch_numbers import Begin, Checkpoint, Resume, decide_start_position
from seamline.spark.stream.read_topics import Topics

MASTER = {"orders": {0: 5, 1: 3}}
BEHIND, AHEAD = {"orders": {0: 4, 1: 3}}, {"orders": {0: 9, 1: 9}}


@pytest.mark.parametrize(
    "checkpoint",
    [
        None,
        Checkpoint(4, 4, BEHIND),
        Checkpoint(4, 4, AHEAD),
        Checkpoint(4, 3, MASTER),
        Checkpoint(4, 4, {"orders": {0: 5}}),
        Checkpoint(4, 4, {}),
    ],
    ids=["lost", "behind", "ahead", "planned only", "another partition", "empty"],
)
def test_a_checkpoint_that_differs_from_the_master_is_not_gone_on_with(checkpoint: Checkpoint | None) -> None:
    """Behind, it would read a range twice; ahead, it would leave one out (C4)."""
    assert decide_start_position(MASTER, checkpoint) == Begin(MASTER)
    assert decide_start_position({}, checkpoint) == Begin({})


def test_a_checkpoint_that_ends_where_the_master_ends_is_gone_on_with() -> None:
    """A restart need not plan anew what nobody has lost."""
    assert decide_start_position(MASTER, Checkpoint(4, 4, MASTER)) == Resume()


class Reader:
    """What Spark would be told."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: self

    def option(self, name: str, value: str) -> Reader:
        self.told[name] = value
        return self


def topics(ids: list[str], beginnings: dict[int, int], ends: dict[int, int]) -> Topics:
    """Know a topic whose id the broker tells, one answer after another."""
    found = Topics.__new__(Topics)
    found.pipeline, found.names = "shop", ("orders",)
    found.ids = found.kafka_ids = {"orders": "t"}
    found.tables = TableSources(sales_pipeline().definition, Layout(Path("nowhere"), "shop"))
    found.connection = SimpleNamespace(for_spark=dict)  # type: ignore[assignment]
    answers, found.marks = iter(ids), {"orders": TopicMark("t", {0: 1})}
    found.admin = SimpleNamespace(  # type: ignore[assignment]
        identify=lambda name: TopicMark(next(answers), {0: 1}),
        beginning_offsets=lambda name: beginnings,
        end_offsets=lambda name: ends,
    )
    return found


def test_a_query_begins_where_the_master_ends_and_stops_at_a_loss() -> None:
    """Left to themselves, a new query begins at latest, and goes on over what Kafka has deleted."""
    reader = Reader()
    spark = SimpleNamespace(readStream=reader, sparkContext=SimpleNamespace(defaultParallelism=2))
    topics([], {}, {}).open_stream(spark, {Lane("t", 0): 5, Lane("t", 1): 0}, limit=7)  # type: ignore[arg-type]
    assert json.loads(reader.told["startingOffsets"]) == {"orders": {"0": 5, "1": 0}}
    assert reader.told["failOnDataLoss"] == "true"


def test_another_topic_of_the_name_is_not_read() -> None:
    """Its offsets begin at 0 again: they would be dropped as known, or taken for what follows (C12)."""
    same = topics(["t", "u"], {}, {})
    same.assert_same()
    with pytest.raises(TopicRecreated, match="'orders' had id t and now has id u"):
        same.assert_same()


def test_a_new_leader_is_noticed_before_an_epoch_of_it_is_committed() -> None:
    """It may lack records that were read, and gives their offsets to others: the log is compared with it first."""
    same = topics([], {}, {})
    leaders = {0: 1, 1: 4}
    same.admin.identify = lambda name: TopicMark("t", {**leaders})  # type: ignore[method-assign]
    same.assert_same()
    leaders[0] = 2
    for _ in range(2):
        with pytest.raises(KafkaUnavailable, match="orders/0 have new leaders"):
            same.assert_same()
        assert same.led_anew
    same.require_kept({})
    same.assert_same()
    assert not same.led_anew


def test_every_lane_is_read_from_the_masters_end_and_a_new_one_from_its_beginning() -> None:
    """What was deleted unread, or lost after it was read, stops the start."""
    held = {Lane("t", 0): 5}
    master: Any = SimpleNamespace(position=lambda lanes: held)
    assert topics([], {0: 2, 1: 1}, {0: 9, 1: 4}).find_starts(master, held) == {
        Lane("t", 0): 5,
        Lane("t", 1): 1,
    }
    with pytest.raises(OffsetGap, match=r"offsets 5\.\.6"):
        topics([], {0: 7}, {0: 9}).find_starts(master, held)
    with pytest.raises(RecordsReplaced, match="Kafka ends at 4"):
        topics([], {0: 0}, {0: 4}).find_starts(master, held)


@pytest.mark.parametrize("ends", [{0: 9}, {0: 9, 1: 3}])
def test_a_broker_that_has_not_heard_of_a_lane_is_waited_for(ends: dict[int, int]) -> None:
    """The others would have gone on without it, and the watermark past the records that wait there."""
    known = {Lane("t", 0): 5, Lane("t", 1): 3, Lane("of before", 2): 7}
    held = dict(list(known.items())[:2])
    master: Any = SimpleNamespace(position=lambda lanes: {lane: held[lane] for lane in lanes})
    with pytest.raises(KafkaUnavailable, match="does not report t/1"):
        topics([], {0: 0} if len(ends) > 1 else {0: 0, 1: 0}, ends).find_starts(master, known)
    assert topics([], {0: 0, 1: 0}, {0: 9, 1: 3}).find_starts(master, known) == held
