"""The function by which an example asks, against the service that it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from seamline import NoAnswer
from seamline.local.scores import ask, clients, find_client
from seamline.local.scoring import Manners, ScoringService, risk_of
from seamline.local.scoring.manners import REFUSAL, WRONG

ADA = {"user": "ada", "amount": Decimal("12.50")}
MANY = [{"user": f"user-{number}", "amount": Decimal(number) / 100} for number in range(200)]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScoringService]:
    """Let one answer at once."""
    with ScoringService(Manners(seed=7, latency=0.0)) as started:
        monkeypatch.setenv("SEAMLINE_SCORING_URL", started.url)
        yield started


def run(story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a story in a loop of its own, and close its connections."""

    async def told() -> Any:
        try:
            return await story()
        finally:
            await find_client().aclose()

    return asyncio.run(told())


def test_answers_are_in_the_order_of_requests(service: ScoringService) -> None:
    """An amount is sent with the digits it has: as a double it might be another."""
    large = {"user": "bob", "amount": Decimal("12345678901234567890.10")}
    small = {"user": "bob", "amount": Decimal("0.00000001")}
    assert run(lambda: ask([ADA, large, small])) == [
        {"risk": risk_of("ada", "12.50", 7)},
        {"risk": risk_of("bob", "12345678901234567890.10", 7)},
        {"risk": risk_of("bob", "0.00000001", 7)},
    ]
    assert service.counts.calls == 1


def test_what_is_refused_has_no_answer(service: ScoringService) -> None:
    """It is recorded with its reason, and not asked again."""
    service.manners = Manners(latency=0.0, refuses=0.5)
    found = run(lambda: ask(MANY))
    assert NoAnswer(REFUSAL) in found
    assert {type(each) for each in found} == {dict, NoAnswer}


def test_a_wrong_answer_is_left_to_the_platform(service: ScoringService) -> None:
    """That compares it with the column that was declared."""
    service.manners = Manners(latency=0.0, wrong=1.0)
    assert run(lambda: ask([ADA])) == [{"risk": WRONG}]


def test_a_failure_is_raised(service: ScoringService) -> None:
    """So that the call is made again: one with status 503, and one without any."""

    async def story() -> None:
        service.manners = Manners(seed=7, latency=0.0, fails=1.0)
        with pytest.raises(httpx.HTTPStatusError, match="503"):
            await ask([ADA])
        service.manners = Manners(seed=7, latency=0.0, away=True)
        with pytest.raises(httpx.RemoteProtocolError):
            await ask([ADA])
        service.manners = Manners(seed=7, latency=0.0)
        assert await ask([ADA]) == [{"risk": risk_of("ada", "12.50", 7)}]

    run(story)


def test_nobody_who_answers_is_raised(service: ScoringService) -> None:
    """There is no connection at all, until there is one again."""

    async def story() -> None:
        await ask([ADA])
        await asyncio.to_thread(service.stop)
        with pytest.raises(httpx.TransportError):
            await ask([ADA])
        service.start()
        assert await ask([ADA]) == [{"risk": risk_of("ada", "12.50", 7)}]
        assert service.counts.calls == 2

    run(story)


def test_many_calls_are_made_at_once(service: ScoringService) -> None:
    """Sixty-four are under way before the first is answered, and each gets its own answer."""
    calls = MANY[:64]

    async def story() -> list[Any]:
        service.manners = Manners(seed=7, latency=3600.0)
        waiting = [asyncio.create_task(ask([each])) for each in calls]
        while service.counts.calls < len(calls):
            await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        service.manners = Manners(seed=7, latency=0.0)
        return await asyncio.gather(*(ask([each]) for each in calls))

    assert run(story) == [[{"risk": risk_of(each["user"], f"{each['amount']:f}", 7)}] for each in calls]


def test_each_event_loop_has_a_client(service: ScoringService) -> None:
    """Connections are of the loop that opened them; those of a loop that has ended are forgotten."""

    async def story() -> httpx.AsyncClient:
        await ask([ADA])
        first = find_client()
        await ask([ADA])
        assert find_client() is first
        return first

    assert run(story) is not run(story)
    assert len(clients) == 1


def test_a_client_that_was_closed_is_replaced(service: ScoringService) -> None:
    """Who cleans up may ask again."""

    async def story() -> None:
        await ask([ADA])
        await find_client().aclose()
        await ask([ADA])

    run(story)
    assert service.counts.calls == 2
