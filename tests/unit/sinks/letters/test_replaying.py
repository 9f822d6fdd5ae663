"""Dead letters that are produced again: as they were, to where they may go, and no transaction without its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.shop import sales_pipeline

from seamline import DeadLetterSink, Pipeline
from seamline.kafka.sending.replay_topic import Stored
from seamline.kafka.sending.transactional_writer import Outgoing
from seamline.model.errors import BadRange
from seamline.model.protocol.sinks.letter_headers import Cause
from seamline.sinks.letters import replaying
from seamline.sinks.letters.replaying import Request, replay_topic, require_target

CAUSE = Cause("shop", "rejected", "x", "", "sales", "t", 1, 5, 1_357_002_000_123, 5, "abc")
SINK = DeadLetterSink("rejected", topic="sales.rejected")


@dataclass
class MemoryReplays:
    """A topic of dead letters in memory, and what was produced of it."""

    stored: list[Stored]
    told: bytes | None = None
    produced: list[Outgoing] = field(default_factory=list)
    transactions: int = 0

    def read_replayed(self) -> bytes | None:
        """Return how far it has been replayed."""
        return self.told

    def list_partitions(self, topic: str) -> set[int]:
        """Return that a topic has two partitions."""
        return {0, 1}

    def read_from(self, starts: Mapping[int, int]) -> Iterator[Stored]:
        """Return what is there from the starts on."""
        return iter([each for each in self.stored if each.offset >= starts.get(each.partition, 0)])

    def write(self, records: Iterable[Outgoing], replayed: bytes) -> None:
        """Produce records."""
        self.produced += records
        self.told, self.transactions = replayed, self.transactions + 1


def store(*causes: Cause) -> MemoryReplays:
    """Store dead letters in one partition."""
    return MemoryReplays(
        [
            Stored(0, at, b"k", b"%d" % at, [("trace", None), *each.to_headers()])
            for at, each in enumerate(causes)
        ]
    )


def test_a_record_is_produced_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, value, headers, time and partition; a partition that the topic has no longer is chosen by the key."""
    monkeypatch.setattr(replaying, "AT_ONCE", 2)
    topic = store(CAUSE, replace(CAUSE, partition=7), replace(CAUSE, unread=True), replace(CAUSE, topic="d"))
    counts = replay_topic(topic, Request(["sales"]))
    assert topic.produced == [
        Outgoing("sales", b"k", b"0", 1, [("trace", None)], CAUSE.timestamp),
        Outgoing("sales", b"k", b"1", -1, [("trace", None)], CAUSE.timestamp),
    ]
    assert dict(counts) == {"produced again": 2, "without their bytes": 1, "of no topic that is read": 1}
    assert topic.transactions == 2
    assert not replay_topic(topic, Request(["sales"]))
    assert replay_topic(topic, Request(["sales"], again=True))["produced again"] == 2


def test_reasons_are_chosen_and_another_topic_takes_all() -> None:
    """What was wrong with some was mended first; the rest follows later, and none comes twice."""
    topic = store(CAUSE, replace(CAUSE, reason="y"), CAUSE)
    assert replay_topic(topic, Request(["sales"], ["x"], to="mended"))["produced again"] == 2
    assert {each.topic for each in topic.produced} == {"mended"}
    assert replay_topic(topic, Request(["sales"]))["produced again"] == 1
    assert [each.value for each in topic.produced] == [b"0", b"2", b"1"]


def test_one_reason_that_is_produced_again_makes_no_other_due() -> None:
    """A replay of all would produce those of every other reason a second time."""
    topic = store(CAUSE, replace(CAUSE, reason="y"))
    assert replay_topic(topic, Request(["sales"]))["produced again"] == 2
    assert replay_topic(topic, Request(["sales"], ["x"], again=True))["produced again"] == 1
    assert not replay_topic(topic, Request(["sales"]))


@pytest.mark.parametrize("lane", ["import:abc", "table:abc"])
@pytest.mark.parametrize("to", ["", "mended"])
def test_rows_of_imports_and_tables_stay(lane: str, to: str) -> None:
    """They name the topic as whose records they were judged, which has never had them."""
    topic = store(replace(CAUSE, topic_id=lane))
    assert dict(replay_topic(topic, Request(["sales"], to=to))) == {"of no topic that is read": 1}
    assert topic.produced == []


@pytest.mark.parametrize(
    ("sink", "to", "words"),
    [
        (replace(SINK, of="late"), "", "count them a second time"),
        (replace(SINK, of="late"), "sales", "count them a second time"),
        (SINK, "sales.rejected", "is kept by a sink"),
        (SINK, "sales.rejected.position", "is kept by a sink"),
        (replace(SINK, connection="other"), "", "no transaction reaches over two clusters"),
    ],
)
def test_where_records_must_not_go_is_refused(sink: DeadLetterSink, to: str, words: str) -> None:
    """Records that were accepted are in the answer; one that goes round would come back for ever."""
    pipeline: Pipeline = replace(sales_pipeline().definition, sinks=[sink])
    with pytest.raises(BadRange, match=words):
        require_target(pipeline, sink, to)


@pytest.mark.parametrize("sink", [SINK, replace(SINK, of="late")])
def test_another_topic_takes_any(sink: DeadLetterSink) -> None:
    """One that the pipeline does not read."""
    require_target(replace(sales_pipeline().definition, sinks=[sink]), sink, "mended")
