"""Calls of another system: what is asked once, what is asked again, and when nobody is asked at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.unit.asking.desk import Desk, Requests, System, tell
from tests.unit.asking.payments import row

from seamline import NoAnswer
from seamline.asking.answer_values import SHOWN
from seamline.asking.pace import FAILURES


@pytest.fixture
def system() -> System:
    return System()


def names(count: int) -> list[str]:
    """Name so many users."""
    return [f"user {at:03d}" for at in range(count)]


def test_equal_requests_are_one_call(system: System) -> None:
    """A hundred payments of a user are one question, also those that come while it is asked."""
    desk, system.gated = Desk(system.ask), True

    async def story() -> None:
        desk.want(["ada", "ada", "bob"])
        await desk.settle()
        desk.want(["ada"])
        system.let()
        await desk.settle()

    tell(desk, story)
    assert system.calls == [["ada"], ["bob"]]
    assert sorted((user, offset) for user, offset, _ in desk.told) == [
        ("ada", 0),
        ("ada", 1),
        ("ada", 3),
        ("bob", 2),
    ]
    assert desk.calls.reused == 2
    assert (desk.calls.waiting, desk.calls.flying, len(desk.calls.open)) == (0, 0, 0)


def test_a_request_that_comes_later_is_asked_again(system: System) -> None:
    """Nothing says that an answer is still right, unless ``fresh=`` does."""
    desk = Desk(system.ask)

    async def story() -> None:
        for _ in range(2):
            desk.want(["ada"])
            await desk.settle()

    tell(desk, story)
    assert system.calls == [["ada"], ["ada"]]


def test_null_is_no_text(system: System) -> None:
    """A row whose user is not known asks about nobody, and not about a user called None or null."""
    desk = Desk(system.ask)

    async def story() -> None:
        desk.want([None, "None", "null", None])
        await desk.settle()

    tell(desk, story)
    assert system.calls == [[None], ["None"], ["null"]]


def test_fresh_answers_are_given_again_until_they_expire(system: System) -> None:
    desk = Desk(system.ask, fresh="1 minute")

    async def story() -> None:
        desk.want(["ada"])
        await desk.settle()
        await desk.wait(60)
        desk.want(["ada"])
        assert len(desk.told) == 2, "at once"
        await desk.wait(0.001)
        desk.want(["ada"])
        await desk.settle()

    tell(desk, story)
    assert system.calls == [["ada"], ["ada"]]
    assert len(desk.told) == 3
    assert desk.calls.reused == 1


def test_an_error_is_never_given_again(system: System) -> None:
    desk = Desk(system.ask, fresh="1 hour")
    system.answers = {"ada": NoAnswer("unknown"), "bob": {"risk": "high"}}

    async def story() -> None:
        for _ in range(2):
            desk.want(["ada", "bob"])
            await desk.settle()

    tell(desk, story)
    assert len(system.calls) == 4


def test_only_so_many_answers_are_kept(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a year would be the memory of a year; the oldest go."""
    monkeypatch.setattr("seamline.asking.calls.MOST_FRESH", 3)
    desk = Desk(system.ask, fresh="1 hour")

    async def story() -> None:
        desk.want(["a", "b", "c", "d"])
        await desk.settle()
        desk.want(["a", "d"])
        await desk.settle()

    tell(desk, story)
    assert system.calls == [["a"], ["b"], ["c"], ["d"], ["a"]]
    assert len(desk.calls.fresh) == 3


def test_a_batch_has_distinct_requests(system: System) -> None:
    desk = Desk(system.ask, batch=3)
    desk.want(["a", "b", "a", "c", "d", "b", "e"])
    tell(desk, desk.settle)
    assert system.calls == [["a", "b", "c"], ["d", "e"]]
    assert sorted(offset for _, offset, _ in desk.told) == [*range(7)]


def test_requests_of_a_batch_that_has_failed_are_asked_one_by_one(system: System) -> None:
    """One that is poisonous takes no others with it."""
    desk = Desk(system.ask, batch=3, retries=2)
    system.poison = {"b"}
    desk.want(["a", "b", "c"])

    async def story() -> None:
        await desk.settle()
        assert not desk.told
        await desk.wait(0.1)
        await desk.wait(0.2)

    tell(desk, story)
    assert system.calls[0] == ["a", "b", "c"]
    assert sorted(system.calls[1:]) == [["a"], ["b"], ["b"], ["c"]]
    assert desk.errors == {"b": "ConnectionError: nobody is there"}
    assert {user: outcome.tries for user, _, outcome in desk.told} == {"a": 2, "b": 3, "c": 2}


def test_a_call_that_fails_is_made_again_later_each_time(system: System) -> None:
    """0.1 s, 0.2 s, 0.4 s: then the failure is what is recorded."""
    desk, system.away = Desk(system.ask, retries=3), True
    desk.want(["ada"])

    async def story() -> None:
        await desk.settle()
        for made, wait in enumerate((0.1, 0.2, 0.4), 1):
            await desk.wait(wait * 0.99)
            assert len(system.calls) == made
            await desk.wait(wait * 0.02)
            assert len(system.calls) == made + 1

    tell(desk, story)
    [(_, _, outcome)] = desk.told
    assert (outcome.error, outcome.tries) == ("ConnectionError: nobody is there", 4)
    assert not outcome.values
    assert desk.calls.failed == 4


def test_no_retries_is_one_call(system: System) -> None:
    desk, system.away = Desk(system.ask, retries=0), True
    desk.want(["ada"])
    tell(desk, desk.settle)
    assert (len(system.calls), desk.users) == (1, ["ada"])


def test_while_the_system_is_away_nothing_is_given_up(system: System) -> None:
    """An outage of a night is no reason for a night of errors; the system is tried by one request at a time."""
    desk, system.away, attempts = Desk(system.ask, at_once=50, retries=1), True, 12
    desk.want(names(100))

    async def story() -> None:
        await desk.settle()
        assert desk.calls.circuit.is_open
        before = len(system.calls)
        assert FAILURES <= before < 100, "those that were under way"
        for attempt in range(attempts):
            await desk.wait(30)
            assert len(system.calls) == before + attempt + 1
        assert not desk.told
        assert desk.calls.waiting == 100
        assert desk.calls.trouble == "ConnectionError: nobody is there"
        assert desk.calls.oldest == attempts * 30
        system.away = False
        await desk.wait(30)
        await desk.wait(1)

    tell(desk, story)
    assert sorted(desk.users) == names(100)
    assert not desk.errors
    assert (desk.calls.trouble, desk.calls.waiting, desk.calls.oldest) == ("", 0, 0.0)


def test_a_request_that_always_fails_does_not_keep_the_system_away(system: System) -> None:
    """It is back, and all would wait for the one request that it never answers."""
    desk, system.away = Desk(system.ask, retries=1), True
    poison = names(FAILURES)[-1]
    desk.want(names(FAILURES))

    async def story() -> None:
        await desk.settle()
        assert desk.calls.circuit.is_open
        system.away, system.poison = False, {poison}
        for _ in range(10):
            await desk.wait(30)

    tell(desk, story)
    assert {*desk.users} == {*names(FAILURES)}
    assert desk.errors.keys() == {poison}


def test_rows_of_a_decision_tell_nobody_that_the_system_is_away(system: System) -> None:
    """They have an error already, and some systems never answer them: everybody else would wait for these."""
    desk, poisonous = Desk(system.ask, retries=1), names(3 * FAILURES)
    system.poison = {*poisonous}
    for at, user in enumerate(poisonous):
        desk.calls.add(row(1000 + at, decided=True), {"user": user})

    async def story() -> None:
        await desk.settle()
        assert not desk.calls.circuit.is_open
        desk.want(["ada"])
        await desk.settle()
        assert desk.users == ["ada"]
        await desk.wait(1)

    tell(desk, story)
    assert desk.errors.keys() == {*poisonous}
    assert desk.calls.waiting == 0


def test_a_silent_system_is_tried_with_what_it_was_not_tried_with(system: System) -> None:
    """However many it never answers: one new row that it does is enough to know that it is there."""
    desk, poisonous = Desk(system.ask, at_once=100, retries=1), names(3 * FAILURES)
    system.poison = {*poisonous}
    desk.want(poisonous)

    async def story() -> None:
        await desk.settle()
        await desk.wait(30)
        assert desk.calls.circuit.is_open
        desk.want(["ada"])
        await desk.wait(30)
        assert "ada" in desk.users

    tell(desk, story)


def test_a_new_row_with_the_request_of_a_decision_waits_for_no_others(system: System) -> None:
    """It is as new as they are; behind all that come later it would wait for ever."""
    desk, system.gated = Desk(system.ask, at_once=1), True

    async def story() -> None:
        desk.want(["first"])
        await desk.settle()
        for at, user in enumerate(("ada", "bob")):
            desk.calls.add(row(1000 + at, decided=True), {"user": user})
        desk.want(["ada", "x", "y"])
        for _ in range(5):
            await desk.settle()
            system.let()
        await desk.settle()

    tell(desk, story)
    assert desk.users == ["first", "ada", "ada", "x", "y", "bob"]


def test_retries_of_a_decision_go_behind_new_rows(system: System) -> None:
    desk = Desk(system.ask, at_once=1, retries=1)
    system.poison = {"ada"}

    async def story() -> None:
        desk.calls.add(row(1000, decided=True), {"user": "ada"})
        await desk.settle()
        system.gated = True
        desk.want(["x", "y"])
        await desk.wait(1)
        for _ in range(3):
            system.let()
            await desk.settle()

    tell(desk, story)
    assert system.calls == [["ada"], ["x"], ["y"], ["ada"]]


def test_a_silent_system_is_tried_with_rows_of_decisions_too(system: System) -> None:
    """They may be the only ones that it answers; and those that were tried have their turn."""
    desk, poisonous = Desk(system.ask, at_once=100, retries=1), names(FAILURES)
    system.poison = {*poisonous}
    desk.want(poisonous)

    async def story() -> None:
        await desk.settle()
        assert desk.calls.circuit.is_open
        for at in range(3):
            desk.calls.add(row(1000 + at, decided=True), {"user": f"good {at}"})
        for _ in range(10):
            await desk.wait(31)

    tell(desk, story)
    assert {"good 0", "good 1", "good 2", *poisonous} == {*desk.users}


def test_no_more_calls_are_made_at_once_than_may_be(system: System) -> None:
    desk, system.gated = Desk(system.ask, at_once=3, batch=2), True
    desk.want(names(20))

    async def story() -> None:
        while len(desk.told) < 20:
            await desk.settle()
            assert system.flying == min(3, -(-(20 - len(desk.told)) // 2))
            assert desk.calls.flying == system.flying
            system.let()

    tell(desk, story)
    assert (system.most, system.ended) == (3, 10)
    assert desk.users == names(20)


def test_no_more_requests_are_made_in_a_second_than_may_be(system: System) -> None:
    desk = Desk(system.ask, per_second=10)
    desk.want(names(50))

    async def story() -> None:
        await desk.settle()
        first = len(system.calls)
        assert first <= 2
        for second in range(1, 3):
            for _ in range(20):
                await desk.wait(0.05)
            assert len(system.calls) - first == pytest.approx(10 * second, abs=1)

    tell(desk, story)


WRONG_LISTS: dict[str, Any] = {
    "too few": [],
    "too many": [{"risk": 1}, {"risk": 2}],
    "a dict": {"risk": 1},
    "nothing": None,
    "a text": "x",
    "a generator": ({"risk": 1} for _ in range(1)),
}


@pytest.mark.parametrize("name", WRONG_LISTS)
def test_what_is_no_list_of_answers_is_a_failure(name: str) -> None:
    """Nobody knows which answer is whose."""

    async def ask(requests: Requests) -> Any:
        return WRONG_LISTS[name]

    desk = Desk(ask, retries=0)
    desk.want(["ada"])
    tell(desk, desk.settle)
    assert "returned no list of 1 answers" in desk.errors["ada"]
    assert desk.calls.failed == 1


def test_an_answer_that_is_wrong_is_an_error_of_its_rows_alone(system: System) -> None:
    """Asking again would not make it right, and the system has answered."""
    desk = Desk(system.ask, batch=5)
    system.answers = {
        "a": {"risk": "high"},
        "b": NoAnswer("unknown user"),
        "c": NoAnswer(""),
        "d": None,
        "e": {"risk": None},
    }
    desk.want("abcde")
    tell(desk, desk.settle)
    assert desk.errors == {
        "a": "risk is 'high', not INT",
        "b": "unknown user",
        "c": "no answer",
        "d": "the answer is of type NoneType, not a dict",
    }
    assert [outcome.values for user, _, outcome in desk.told if user == "e"] == [{"risk": None}]
    assert {outcome.tries for _, _, outcome in desk.told} == {1}
    assert (len(system.calls), desk.calls.failed) == (1, 0)


def test_what_there_is_no_answer_for_is_told_in_a_few_words(system: System) -> None:
    """A page of another system's is no reason; and half a letter is no text, of which no record is made."""
    desk = Desk(system.ask)
    system.answers = {"ada": NoAnswer("<html>" * 100_000), "bob": NoAnswer("no file \udcff")}
    desk.want(["ada", "bob"])
    tell(desk, desk.settle)
    assert desk.errors["ada"].startswith("<html>")
    assert len(desk.errors["ada"]) <= SHOWN
    assert desk.errors["bob"].startswith("no file ")
    assert desk.errors["bob"].encode()


def test_a_call_that_takes_too_long_has_failed(system: System) -> None:
    """And is told so; its slot is free again."""
    desk, system.gated = Desk(system.ask, timeout="1 millisecond", retries=0, at_once=1), True
    desk.want(["a", "b"])

    async def story() -> None:
        while len(desk.told) < 2:
            await asyncio.sleep(0)

    tell(desk, story)
    assert desk.errors == {"a": "timeout", "b": "timeout"}
    assert (system.flying, desk.calls.flying) == (0, 0)


def test_calls_that_are_cancelled_tell_nothing(system: System) -> None:
    """The next process asks again: nothing of it is recorded."""
    desk, system.gated = Desk(system.ask), True
    desk.want(["a", "b"])
    tell(desk, desk.settle)
    assert system.ended == 2
    assert not desk.told


@pytest.mark.parametrize("turns", range(6))
def test_the_calls_end_when_they_are_cancelled(system: System, turns: int) -> None:
    """Whatever has happened in the last turns of the loop: who waits for their end would wait for ever."""
    desk, system.away = Desk(system.ask, retries=5), True

    async def story() -> None:
        calling = asyncio.create_task(desk.calls.run())
        desk.want(["ada"])
        await desk.settle()
        desk.want(["bob"])
        for _ in range(turns):
            await asyncio.sleep(0)
        calling.cancel()
        await desk.settle()
        ended = calling.done()
        while not calling.done():
            calling.cancel()
            await asyncio.sleep(0)
        assert ended

    asyncio.run(story())


def test_a_call_that_its_own_client_cancels_has_failed() -> None:
    """A client that is closed cancels what waits for it; a row that is lost so is never answered."""
    raised: list[Requests] = []

    async def ask(requests: Requests) -> Sequence[object]:
        raised.append(requests)
        if len(raised) == 1:
            raise asyncio.CancelledError
        return [{"risk": 1}]

    desk = Desk(ask, retries=1)
    desk.want(["ada"])

    async def story() -> None:
        await desk.settle()
        await desk.wait(0.1)

    tell(desk, story)
    assert [(user, outcome.values, outcome.tries) for user, _, outcome in desk.told] == [
        ("ada", {"risk": 1}, 2)
    ]


WRONG_ANSWERS: dict[str, tuple[str, object]] = {
    "no instant of UTC": ("TIMESTAMP", datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))),
    "one of before the first": ("TIMESTAMP", datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))),
    "one in a list": ("ARRAY<TIMESTAMP>", [datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))]),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_no_answer_ends_the_calls(name: str, system: System) -> None:
    """The process would end at this row, and the next one, too; "for ever" is often spelled so."""
    kind, value = WRONG_ANSWERS[name]
    desk = Desk(system.ask, columns=[f"until {kind}"])
    system.answers = {"ada": {"until": value}, "bob": {"until": None}}
    desk.want(["ada", "bob"])
    tell(desk, desk.settle)
    assert desk.errors.keys() == {"ada"}
    assert sorted(desk.users) == ["ada", "bob"]


def test_an_instant_keeps_its_zone(system: System) -> None:
    """The one that UTC has is as good as any."""
    desk = Desk(system.ask, columns=["until TIMESTAMP"])
    system.answers = {"ada": {"until": datetime(2026, 1, 5, 2, tzinfo=timezone(timedelta(hours=2)))}}
    desk.want(["ada"])
    tell(desk, desk.settle)
    [(_, _, outcome)] = desk.told
    assert datetime.fromisoformat(outcome.values["until"]) == datetime(2026, 1, 5, tzinfo=UTC)


def test_what_was_decided_waits_for_new_rows(system: System) -> None:
    """A question about a year of rows must not keep those of this minute waiting."""
    desk = Desk(system.ask, at_once=1)
    for at, user in enumerate(("old", "older")):
        desk.calls.add(row(100 + at, decided=True), {"user": user})
    desk.want(["new"])
    tell(desk, desk.settle)
    assert desk.users == ["new", "old", "older"]


def test_no_call_is_made_once_it_is_over(system: System) -> None:
    """What is being asked may be answered; the rest is asked by the next process."""
    desk, system.gated = Desk(system.ask, at_once=2), True
    desk.want(names(9))

    async def story() -> None:
        await desk.settle()
        desk.calls.over = True
        system.gated = False
        system.let()
        await desk.settle()

    tell(desk, story)
    assert (len(system.calls), desk.calls.flying, len(desk.users)) == (2, 0, 2)


def test_a_batch_that_has_failed_is_asked_one_by_one_without_retries_too(system: System) -> None:
    desk, system.poison = Desk(system.ask, batch=3, retries=0), {"b"}
    desk.want(["a", "b", "c"])

    async def story() -> None:
        await desk.settle()
        await desk.wait(1)

    tell(desk, story)
    assert sorted(desk.users) == ["a", "b", "c"]
    assert desk.errors == {"b": "ConnectionError: nobody is there"}
