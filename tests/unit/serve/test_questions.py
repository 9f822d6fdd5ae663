"""The page of questions: how far each has come, what failed, and what people have decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.asking.payments import START, Log, answer_of, compiled, row

from seamline.asking.askers import Askers
from seamline.asking.positions import Position, write_position
from seamline.asking.questions import Outcome
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.control import AskDecision
from seamline.model.time.intervals import Interval
from seamline.plan.stream.ask_counts import AskCount
from seamline.serve.questions import Failure, QuestionState, list_question_states
from seamline.web.render import render_template

PIPELINE = compiled(version="2")
[ASK] = PIPELINE.asks
DAY = Interval(START, datetime(2026, 1, 6, tzinfo=UTC))
BUSY = AskCount(
    answered=1234, errors=5, waiting=7, calls=1300, failures=61, away=90.0, trouble="timeout", p50=0.02
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, PIPELINE)


def state(log: Log, **counts: AskCount) -> QuestionState:
    [found] = list_question_states(PIPELINE, log.layout, counts)
    return found


def page(*found: QuestionState) -> str:
    where = {"root": "/seamline", "airflow": "", "pipeline": "shop", "here": "questions", "status": 200}
    return render_template("questions.html", {**where, "live": 5, "found": found})


def test_a_question_that_was_never_asked_says_so(log: Log) -> None:
    found = state(log)
    assert (found.begun, found.count, found.failures, found.decisions) == (False, None, (), ())
    assert "No stream has asked yet" in page(found)
    assert "This pipeline asks no other system." in page()


def test_a_question_shows_how_far_it_has_come(log: Log) -> None:
    """Counts are what the process says; an outage is the first thing that is read."""
    held = log.pay({}, {}).number
    Askers(PIPELINE, log.layout).begin_questions(held)
    write_position(log.layout, ASK.id, Position(held + 3))
    found = state(log, scored=BUSY)
    assert (found.begun, found.born, found.epoch, found.count) == (True, held, held + 3, BUSY)
    said = page(found)
    for words in ("1,234", "risk INT of each row of paid", "not answered for 90 seconds: timeout", "1,300"):
        assert words in said, words
    assert "No process asks now." in page(state(log))


def test_the_newest_errors_are_those_of_this_version(log: Log) -> None:
    """By reason; an answer is none, nor is what another version was told."""
    log.pay({}, {}, {}, {})
    wrong = [
        answer_of(ASK, row(at), Outcome(error=why))
        for at, why in enumerate(("timeout", "timeout", "unknown"))
    ]
    old = {**answer_of(ASK, row(3), Outcome(error="gone")), "scored_version": "1"}
    log.answer(*wrong[:1], old, answer_of(ASK, row(3)))
    last = log.answer(*wrong[1:]).number
    assert state(log).failures == (Failure("timeout", 2, last), Failure("unknown", 1, last))
    assert "timeout" in page(state(log))


def test_files_of_before_the_question_have_no_errors(tmp_path: Path) -> None:
    """Their columns are not there."""
    earlier = Log(tmp_path, compiled(name="owner", columns=["owner"]))
    earlier.pay({}, {})
    assert [each.failures for each in list_question_states(PIPELINE, earlier.layout, {})] == [()]


def test_decisions_are_listed_with_what_became_of_them(log: Log) -> None:
    control = ControlTable.ensure(log.layout)
    first = AskDecision("scored", DAY, True, "ada", "mended", START)
    second = replace(first, only_errors=False, reason="<all>")
    for each in (first, replace(first, ask="owner"), second):
        control.ask_again(each)
    write_position(log.layout, ASK.id, Position(1, 2))
    assert state(log).decisions == ((second, False), (first, True))
    said = page(state(log))
    assert said.count("not carried out yet") == 1
    assert "&lt;all&gt;" in said
