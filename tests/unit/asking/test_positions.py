"""How far a question was asked, and where it began: a file that may be lost, beside a decision that is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.asking.payments import SCORED, SHOP, START

from seamline.asking.askers import Askers
from seamline.asking.positions import Position, read_position, write_position
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import find_question_births, list_ask_decisions
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.control import AskDecision
from seamline.model.time.intervals import Interval

NOW = datetime(2026, 1, 6, tzinfo=UTC)
DAY = Interval(START, NOW)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "shop")


def begin(layout: Layout, held: int, **changes: Any) -> str:
    """Start a driver that holds an epoch, of the question with some changes; return the question's id."""
    made = compile_pipeline(replace(SHOP, derive=[replace(SCORED, **changes)]))
    Askers(made, layout).begin_questions(held)
    return made.asks[0].id


def decide(layout: Layout, reason: str = "mended", ask: str = "scored") -> AskDecision:
    """Decide to ask again."""
    made = AskDecision(ask, DAY, True, "ada", reason, NOW)
    ControlTable.ensure(layout).ask_again(made)
    return made


def test_a_position_is_what_was_written(layout: Layout) -> None:
    for said in (Position(7, 2), Position(9, 2)):
        write_position(layout, "scored-1", said)
        assert read_position(layout, "scored-1") == said
    assert [each.name for each in layout.asked("scored-1").parent.iterdir()] == ["scored-1.json"]


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b'{"epoch": 7, "more": 1}', b"\0" * 40]
)
def test_a_position_that_cannot_be_read_is_the_birth(layout: Layout, content: bytes | None) -> None:
    """A power cut leaves an empty file, or zeros. What is looked at again is found in the master, and not asked."""
    id = begin(layout, 3)
    if content is not None:
        write_position(layout, id, Position(7, 2))
        layout.asked(id).write_bytes(content)
    assert read_position(layout, id) == Position(3)


def test_a_question_is_born_once(layout: Layout) -> None:
    """Whichever driver starts later: its rows would be passed over."""
    id = begin(layout, 5)
    assert find_question_births(layout) == {id: (5, 0)}
    write_position(layout, id, Position(8))
    decide(layout)
    assert begin(layout, 9) == id
    assert find_question_births(layout) == {id: (5, 0)}
    assert read_position(layout, id) == Position(8)


def test_another_question_is_born_anew(layout: Layout) -> None:
    """Another version, other rows: what was answered before does not count for it. How it asks is no other question."""
    first = begin(layout, 5)
    assert begin(layout, 6, timeout="9 seconds", by="tests.unit.asking.desk:System.ask") == first
    second, third = begin(layout, 7, version="2"), begin(layout, 9, when="amount > 10")
    assert find_question_births(layout) == {first: (5, 0), second: (7, 0), third: (9, 0)}
    assert begin(layout, 11) == first, "whoever goes back goes on where he was"
    assert find_question_births(layout)[first] == (5, 0)


def test_decisions_of_before_its_birth_are_not_about_a_question(layout: Layout) -> None:
    """What failed for another version is no reason to ask this one about the past."""
    begin(layout, 5)
    decide(layout)
    decide(layout)
    second = begin(layout, 7, version="2")
    assert read_position(layout, second) == Position(7, 2)
    decide(layout)
    assert read_position(layout, second) == Position(7, 2), "that one is"


def test_nor_are_they_where_its_position_is_lost(layout: Layout) -> None:
    """A file that a power cut has emptied would let all decisions that there ever were be carried out once more."""
    begin(layout, 5)
    decide(layout)
    second = begin(layout, 7, version="2")
    write_position(layout, second, Position(9, 3))
    layout.asked(second).write_bytes(b"")
    assert read_position(layout, second) == Position(7, 1)


def test_decisions_are_listed_in_their_order(layout: Layout) -> None:
    """A position counts them, of all questions."""
    assert list_ask_decisions(layout) == ()
    made = [decide(layout, "first"), decide(layout, "second", "owner"), decide(layout, "third")]
    assert [*list_ask_decisions(layout)] == made
    assert ControlTable.ensure(layout).read().asks == tuple(made)


def test_a_decision_is_written_as_it_is(layout: Layout) -> None:
    made = AskDecision("scored", DAY, False, "ada", 'they said "yes"', NOW)
    assert AskDecision.from_row(made.to_row()) == made
    assert str(made).startswith("scored, rows without an answer of ")
    assert str(replace(made, only_errors=True)).startswith("scored, errors of ")
