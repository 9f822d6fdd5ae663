"""Dead letters in a definition: what they may be of, what is refused, and which epochs have some."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.model.refused import require_refused
from tests.unit.shop import sales_pipeline

from seamline import DeadLetterSink, KafkaSink, Pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.sinks.dead_letters import LettersOf, choose_way, list_letters, name_commit

SINK = DeadLetterSink("rejected", topic="sales.rejected")
SIDED = {"refunds": "amount < 0"}
AT = datetime(2026, 3, 1, tzinfo=UTC)


def with_sinks(*sinks: AnySink, side: dict[str, str] | None = None) -> Pipeline:
    """Declare the shop with sinks and a side."""
    return replace(sales_pipeline().definition, sinks=sinks, side=SIDED if side is None else side)


def test_dead_letters_take_part_in_no_version_and_are_stored() -> None:
    """A topic of them may be added at any time, and no interval is built again for it."""
    plain, sinking = compile_pipeline(with_sinks()), compile_pipeline(with_sinks(SINK))
    assert sinking.record_version == plain.record_version
    assert [view.id for view in sinking.views] == [view.id for view in plain.views]
    assert from_json(to_json(sinking.definition)).sinks == (SINK,)
    assert (SINK.id, replace(SINK, name="out").id) == ("rejected_dead_letters", "out")


@pytest.mark.parametrize("of", ["rejected", "late", "refunds"])
def test_what_may_be_sent(of: str) -> None:
    """Refused records, late ones, and those of each side."""
    compile_pipeline(with_sinks(replace(SINK, of=of)))


@pytest.mark.parametrize(
    ("sinks", "field", "words"),
    [
        ([replace(SINK, of="refund")], "sinks[refund_dead_letters].of", "the pipeline has refunds"),
        (
            [replace(SINK, topic="sales")],
            "sinks[rejected_dead_letters].topic",
            "is one that the pipeline reads",
        ),
        ([replace(SINK, topic="a b")], "sinks[rejected_dead_letters].topic", "is not the name of a topic"),
        ([replace(SINK, connection="a b")], "sinks[rejected_dead_letters].connection", "Airflow"),
        ([replace(SINK, name="Out-1")], "sinks[Out-1].name", '"out"'),
        ([SINK, KafkaSink("sales", topic=SINK.topic)], "sinks[sales_kafka]", "overwrite"),
        (
            [SINK, KafkaSink("sales", topic="sales.rejected.position")],
            "sinks[sales_kafka].topic",
            "position of another sink",
        ),
        ([SINK, replace(SINK, topic="b")], "sinks[rejected_dead_letters].name", "declared twice"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(sinks: list[AnySink], field: str, words: str) -> None:
    """Each is found before anything starts, and said with what to write instead."""
    require_refused(with_sinks(*sinks), field, words, sinks[0].origin.file)


def test_a_side_with_a_name_that_says_something_else_is_refused() -> None:
    """Nobody could say which of both the topic has."""
    declared = with_sinks(replace(SINK, of="late"), side={"late": "amount < 0"})
    require_refused(declared, "sinks[late_dead_letters].of", "another name", declared.sinks[0].origin.file)
    compile_pipeline(with_sinks(SINK, side={"late": "amount < 0"}))


def epoch(number: int, *, rows: int = 0, refused: int = 0, late: int = 0, hour: int = 0) -> Epoch:
    """Make an epoch."""
    return Epoch(
        number,
        0,
        AT,
        "v",
        accepted={"d": rows},
        refused={"x": refused} if refused else {},
        late={"d": late} if late else {},
        watermark=AT.replace(hour=hour),
    )


def test_a_way_has_the_epochs_that_have_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others nothing is read; late is what was behind the watermark as an epoch began."""
    log = [epoch(1, rows=3, refused=1), epoch(4, rows=3, late=2, hour=1), epoch(5, rows=2, late=1, hour=2)]
    assert list_letters("rejected", None, log) == [LettersOf(1, None)]
    assert list_letters("late", None, log) == [LettersOf(4, AT), LettersOf(5, AT.replace(hour=1))]
    assert list_letters("late", log[0], log[1:]) == list_letters("late", None, log)
    assert [each.number for each in list_letters("refunds", None, log)] == [1, 4, 5]
    monkeypatch.setattr("seamline.model.protocol.sinks.dead_letters.MOST_ROWS", 5)
    assert choose_way("refunds", log) == log[:2]
    assert choose_way("rejected", log) == log
    monkeypatch.setattr("seamline.model.protocol.sinks.dead_letters.MOST_EPOCHS", 1)
    assert choose_way("rejected", log) == log[:1]


def test_a_commit_is_named_by_what_nothing_changes() -> None:
    """The ledger's row and the master's say more of an epoch than the other each, and name the same commit."""
    one = replace(epoch(1, rows=3), ranges=(OffsetRange(Lane("t", 0), 0, 3),))
    assert name_commit(one) == name_commit(replace(one, took={"files": 1.0}, before=0))
    others = [replace(one, token=1), replace(one, ranges=()), replace(one, number=2)]
    assert len({name_commit(each) for each in (one, *others)}) == 4
    assert name_commit(None) == ""
