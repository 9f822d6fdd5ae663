"""Calls of a function that a test plays, by a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tests.unit.asking.payments import question, row

from seamline.asking.calls import Calls
from seamline.asking.questions import Outcome, Question

ROUNDS = 200
"""Turns of the loop after which all has happened that can happen by itself."""
Requests = list[dict[str, Any]]


class System:
    """Another system: it answers by a user's name, at once, or when it is let."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.away = False
        self.poison: set[str] = set()
        self.answers: Mapping[str, object] = {}
        self.gates: list[asyncio.Event] = []
        self.gated = False
        self.flying = self.most = self.ended = 0

    async def ask(self, requests: Requests) -> Sequence[object]:
        """Answer, or fail."""
        users = [each["user"] for each in requests]
        self.calls.append(users)
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            if self.gated:
                self.gates.append(asyncio.Event())
                await self.gates[-1].wait()
            if self.away or self.poison & {*users}:
                raise ConnectionError("nobody is there")
            return [self.answers.get(user, {"risk": len(user or "")}) for user in users]
        finally:
            self.flying -= 1
            self.ended += 1

    def let(self) -> None:
        """Let all calls go on that wait."""
        for gate in self.gates:
            gate.set()
        self.gates.clear()


class Desk:
    """Where rows want answers."""

    def __init__(self, function: Callable[[Requests], Awaitable[Any]], **changes: Any) -> None:
        self.now, self.wanted = 1000.0, 0
        self.told: list[tuple[str, int, Outcome]] = []
        self.calls = Calls(question(**changes), function, self.note, lambda: self.now)  # type: ignore[arg-type]

    def note(self, asked: Question, outcome: Outcome) -> None:
        """Note what came of a question, row by row."""
        self.told += [(asked.request["user"], each.offset, outcome) for each in asked.rows]

    def want(self, users: Iterable[str | None]) -> None:
        """Want an answer for a row of each user."""
        for user in users:
            self.calls.add(row(self.wanted), {"user": user})
            self.wanted += 1

    async def settle(self) -> None:
        """Let all happen that can happen without time."""
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.calls.changed.set()
        await self.settle()

    @property
    def users(self) -> list[str]:
        """Who was answered, or has an error, in this order."""
        return [user for user, _, _ in self.told]

    @property
    def errors(self) -> dict[str, str]:
        """The errors by user."""
        return {user: outcome.error for user, _, outcome in self.told if outcome.error}


def tell(desk: Desk, story: Callable[[], Awaitable[None]]) -> None:
    """Make calls while a story is told."""

    async def both() -> None:
        calling = asyncio.create_task(desk.calls.run())
        try:
            await story()
            if calling.done():
                await calling
        finally:
            # Once is not always enough: see test_the_calls_end_when_they_are_cancelled.
            for _ in range(ROUNDS):
                calling.cancel()
                await asyncio.sleep(0)
            with suppress(asyncio.CancelledError, Exception):
                await calling

    asyncio.run(both())
