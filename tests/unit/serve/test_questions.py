"""The page of questions: how far each has come, what failed, and what people have decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.asking.payments import ANSWERS, START, Log, answer_of, compiled, row

from seamline.asking.askers import Askers
from seamline.asking.positions import Position, write_position
from seamline.asking.questions import Outcome
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.control import AskDecision
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.stream_state import Actual
from seamline.serve import questions
from seamline.serve.questions import (
    DONE,
    EARLIER,
    WAITS,
    Failure,
    Failures,
    QuestionState,
    list_question_states,
)
from seamline.web.render import render_template

PIPELINE = compiled(version="2")
[ASK] = PIPELINE.asks
NOW = datetime(2026, 1, 6, 9, 30, tzinfo=UTC)
DAY = Interval(START, datetime(2026, 1, 6, tzinfo=UTC))
BUSY = AskCount(
    answered=1234,
    errors=5,
    reused=17,
    waiting=7,
    behind=3,
    flying=2,
    calls=1300,
    failures=61,
    oldest=95.25,
    p50=0.02,
    p99=1.5,
    at=format_utc_instant(NOW),
)
AWAY = replace(BUSY, away=120.0, trouble="timeout")
TIMEOUT = Outcome(error="timeout")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, PIPELINE)


def state(
    log: Log, count: AskCount | None = None, *, stream: Actual = Actual.RUNNING, now: datetime = NOW
) -> QuestionState:
    """Look at the one question, whose process says something."""
    seen = Observation("shop", now, actual=stream, asks={"scored": count} if count else None)
    [found] = list_question_states(PIPELINE, log.layout, seen)
    return found


def page(*found: QuestionState) -> str:
    where = {"root": "/seamline", "airflow": "", "pipeline": "shop", "here": "questions", "status": 200}
    return render_template("questions.html", {**where, "live": 5, "found": found})


def begin(log: Log, held: int) -> None:
    """Let a stream ask from an epoch on."""
    Askers(PIPELINE, log.layout).begin_questions(held)


def test_a_question_that_was_never_asked_says_so(log: Log) -> None:
    found = state(log)
    assert (found.begun, found.count, found.failures, found.decisions) == (False, None, Failures(), ())
    assert "No stream has asked yet" in page(found)
    assert "This pipeline asks no other system." in page()


def test_a_question_shows_how_far_it_has_come(log: Log) -> None:
    """Counts are what the process says; each number is there."""
    held = log.pay({}, {}).number
    begin(log, held)
    assert state(log).done is None
    assert "no epoch yet" in page(state(log))
    write_position(log.layout, ASK.id, Position(held + 3))
    found = state(log, BUSY)
    assert (found.begun, found.born, found.done, found.count) == (True, held, held + 3, BUSY)
    assert (found.silence, found.away) == ("", None)
    said = page(found)
    numbers = ("1,234", "5", "17", "7", "95.2", "2", "1,300", "61", "0.020", "1.500")
    for number in numbers:
        assert f'<td class="number">{number}</td>' in said, number
    for words in (
        "risk INT of each row of paid",
        ANSWERS,
        f"epoch {held + 3}, where each row",
        "3 epochs behind",
    ):
        assert words in said, words
    assert '<p class="alarm">' not in said


def test_an_outage_is_the_first_thing_that_is_read(log: Log) -> None:
    """With when it began; the last error alone is none."""
    begin(log, 0)
    found = state(log, AWAY)
    assert (found.silence, found.away) == (
        "no answer for 2 min, 7 rows wait: timeout",
        NOW - timedelta(minutes=2),
    )
    said = page(found)
    alarm = said.index('<p class="alarm">No answer for 2 min, 7 rows wait: timeout')
    assert alarm < said.index("2026-01-06 09:28 UTC") < said.index("risk INT of each row of paid")
    failed = page(state(log, replace(BUSY, trouble="<timeout>")))
    assert "&lt;timeout&gt;" in failed
    assert '<p class="alarm">' not in failed


def test_a_process_that_says_nothing_is_no_process_that_is_well(log: Log) -> None:
    """Its last words would look like those of one that asks."""
    begin(log, 0)
    found = state(log, BUSY, now=NOW + timedelta(minutes=5))
    assert found.silence.startswith("the process that asks has said nothing for 5 min")
    assert "has not said yet how it goes" in page(state(log))


def test_a_stream_that_does_not_run_is_no_outage(log: Log) -> None:
    """What its process said last is told as what was."""
    begin(log, 0)
    found = state(log, AWAY, stream=Actual.STOPPED, now=NOW + timedelta(days=1))
    assert found.silence == ""
    said = page(found)
    assert "The stream is stopped: rows wait until it runs. This is how it went before." in said
    assert '<p class="alarm">' not in said


def test_the_newest_errors_are_those_of_this_version(log: Log) -> None:
    """By reason; an answer is none, nor is what another version was told."""
    log.pay({}, {}, {}, {})
    wrong = [
        answer_of(ASK, row(at), Outcome(error=why))
        for at, why in enumerate(("timeout", "timeout", "<unknown>"))
    ]
    old = {**answer_of(ASK, row(3), Outcome(error="gone")), "scored_version": "1"}
    log.answer(*wrong[:1], old, answer_of(ASK, row(3)))
    last = log.answer(*wrong[1:]).number
    expected = (Failure("timeout", 2, last), Failure("<unknown>", 1, last))
    assert state(log).failures == Failures(expected)
    assert "&lt;unknown&gt;" in page(state(log))


def test_errors_are_found_below_any_number_of_epochs_without_one(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no more files are read than the newest that have any: a page of a year's errors would take minutes."""
    monkeypatch.setattr(questions, "FILES", 2)
    log.pay({}, {}, {})
    numbers = [log.answer(answer_of(ASK, row(at), TIMEOUT)).number for at in range(3)]
    for _ in range(4):
        log.pay({})
        log.answer(answer_of(ASK, row(3)))
    assert state(log).failures == Failures((Failure("timeout", 2, numbers[-1]),))


def test_files_without_statistics_may_have_errors(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event time that is none of Python's leaves a file without any."""
    log.pay({})
    last = log.answer(answer_of(ASK, row(0), TIMEOUT)).number
    files = read_cached_table(log.layout.table("master"), "files", Files.of)
    assert files is not None
    bare = replace(files, actions=files.actions.select(["path", "num_records"]))
    monkeypatch.setattr(questions, "read_cached_table", lambda *_: bare)
    assert state(log).failures == Failures((Failure("timeout", 1, last),))


def test_files_of_before_the_question_have_no_errors(tmp_path: Path) -> None:
    """Their columns are not there."""
    earlier = Log(tmp_path, compiled(name="owner", columns=["owner"]))
    earlier.pay({}, {})
    seen = Observation("shop", NOW)
    [found] = list_question_states(PIPELINE, earlier.layout, seen)
    assert found.failures == Failures()


def test_decisions_are_listed_with_what_became_of_them(log: Log) -> None:
    """The position counts those of all questions; one of before this question's birth is not about it."""
    control = ControlTable.ensure(log.layout)
    old = AskDecision("scored", DAY, True, "ada", "for another version", START)
    control.ask_again(old)
    assert state(log).decisions == ((old, EARLIER),)
    begin(log, 0)
    first, second = replace(old, reason="mended"), replace(old, only_errors=False, reason="<all>")
    for each in (first, replace(first, ask="owner"), second):
        control.ask_again(each)
    assert [word for _, word in state(log).decisions] == [WAITS, WAITS, EARLIER]
    write_position(log.layout, ASK.id, Position(1, 3))
    assert state(log).decisions == ((second, WAITS), (first, DONE), (old, EARLIER))
    said = page(state(log))
    assert [said.count(f"<td>{word}</td>") for word in (WAITS, DONE, EARLIER)] == [1, 1, 1]
    assert "&lt;all&gt;" in said


def test_no_more_is_listed_than_a_page_has_room_for(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many are left out: errors that name a row each are as many as rows."""
    monkeypatch.setattr(questions, "ERRORS", 2)
    monkeypatch.setattr(questions, "DECISIONS", 1)
    log.pay({}, {}, {})
    log.answer(*(answer_of(ASK, row(at), Outcome(error=f"no user {at}")) for at in range(3)))
    control = ControlTable.ensure(log.layout)
    for reason in ("first", "second", "third"):
        control.ask_again(AskDecision("scored", DAY, True, "ada", reason, START))
    found = state(log)
    assert [decision.reason for decision, _ in found.decisions] == ["third"]
    said = page(found)
    assert "1 other error not listed" in said
    assert "2 older decisions not listed" in said
