"""Calls of another system: of distinct requests, so many at once, each with a time limit, and again where one fails."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from seamline.asking.answer_values import SHOWN, WrongAnswer, check_answer, describe_error
from seamline.asking.pace import Circuit, Pace
from seamline.asking.questions import AskedRow, Outcome, Question
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.definition.asks import NoAnswer

Function = Callable[[list[dict[str, Any]]], Coroutine[Any, Any, Sequence[object]]]
"""The user's function."""
Deliver = Callable[[Question, Outcome], None]
"""Is told what came of a question."""
Line = OrderedDict[str, Question]
"""Questions that wait, by key, the first of them next."""
FIRST_RETRY, LONGEST_RETRY = 0.1, 10.0
"""Seconds until a call that has failed is made again; twice as many after each failure."""
MOST_FRESH = 100_000
"""Answers that are kept for equal requests."""
MEASURED = 1000
"""Calls whose durations are known."""


class Calls:
    """Asks questions in the order in which they were wanted, and delivers what came of each, once."""

    def __init__(
        self,
        ask: CompiledAsk,
        function: Function,
        deliver: Deliver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ask, self.function, self.deliver, self.clock = ask, function, deliver, clock
        self.declared = ask.definition
        self.pace, self.circuit = Pace(self.declared.per_second), Circuit()
        self.queue: Line = OrderedDict()
        self.behind: Line = OrderedDict()
        """Questions of decisions alone, which are asked when no others wait."""
        self.tried: Line = OrderedDict()
        """Questions that a silent system was tried with already."""
        self.over = False
        """Whether no more calls are made."""
        self.later: list[tuple[float, int, Question]] = []
        self.open: dict[str, Question] = {}
        """The questions that wait or are being asked, by key, the oldest first."""
        self.fresh: OrderedDict[str, tuple[float, Outcome]] = OrderedDict()
        self.changed = asyncio.Event()
        self.flying, self.made, self.failed, self.reused, self.waiting = 0, 0, 0, 0, 0
        self.durations: deque[float] = deque(maxlen=MEASURED)
        self.trouble = ""

    def add(self, row: AskedRow, request: Mapping[str, Any]) -> None:
        """Want an answer to a request for a row."""
        key = repr(tuple(request.values()))
        if known := self.find_fresh(key):
            self.reused += 1
            return self.deliver(Question(key, request, self.clock(), [row]), known)
        question = self.open.get(key)
        if question is None:
            question = self.open[key] = Question(key, request, self.clock(), [row])
            self.line_up(question)
        else:
            self.reused += 1
            question.rows.append(row)
            if not row.decided and key in self.behind:
                self.line_up(self.behind.pop(key))
        self.waiting += 1
        return None

    def line_up(self, question: Question) -> None:
        """Let a question wait for its call."""
        (self.behind if question.decided else self.queue)[question.key] = question
        self.changed.set()

    def find_fresh(self, key: str) -> Outcome | None:
        """Find an answer that is still good for an equal request."""
        kept = self.fresh.get(key)
        if kept and kept[0] < self.clock():
            del self.fresh[key]
            return None
        return kept and kept[1]

    @property
    def oldest(self) -> float:
        """The seconds that the oldest question has waited; 0 where there is none."""
        first = next(iter(self.open.values()), None)
        return self.clock() - first.since if first else 0.0

    async def run(self) -> None:
        """Make calls until cancelled; those that are being made are then given up."""
        async with asyncio.TaskGroup() as calls:
            while True:
                self.changed.clear()
                delay = self.find_delay()
                if delay == 0.0:
                    calls.create_task(self.work(self.take_batch()))
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await self.changed.wait()

    def find_delay(self) -> float | None:
        """Return the seconds until the next call may be made; None until something changes."""
        now = self.clock()
        while self.later and self.later[0][0] <= now:
            question = heapq.heappop(self.later)[2]
            if self.circuit.is_open:
                self.tried[question.key] = question
            else:
                self.line_up(question)
        if self.over or self.flying >= self.declared.at_once:
            return None
        if not (self.queue or self.tried or self.behind):
            return self.later[0][0] - now if self.later else None
        allowed = self.circuit.delay(now, self.flying)
        return None if allowed is None else max(allowed, self.pace.delay(now))

    def find_line(self) -> Line:
        """Return the line of the next question: new ones first, then those tried and those of decisions in turn."""
        if self.queue:
            return self.queue
        return self.tried if self.tried and (not self.behind or self.made % 2) else self.behind

    def take_batch(self) -> list[Question]:
        """Take the questions of the next call; one that has failed is asked alone, as is what tries a silent system."""
        line = self.find_line()
        batch = [line.popitem(last=False)[1]]
        if not batch[0].tries and not self.circuit.is_open:
            while line and len(batch) < self.declared.batch and not next(iter(line.values())).tries:
                batch.append(line.popitem(last=False)[1])
        self.pace.take(self.clock(), len(batch))
        self.flying += 1
        return batch

    async def work(self, batch: list[Question]) -> None:
        """Make one call after another, as long as the next one may be made at once.

        Calls that began together would else end and begin together for ever, and wait for each other.
        """
        await self.call(batch)
        while self.find_delay() == 0.0:
            await self.call(self.take_batch())
            # A function may answer without ever waiting for anything.
            await asyncio.sleep(0)
        self.changed.set()

    async def call(self, batch: list[Question]) -> None:
        """Make one call, and deliver or repeat what came of it."""
        began = self.clock()
        self.made += 1
        try:
            async with asyncio.timeout(self.ask.timeout.total_seconds()):
                found = await self.function([dict(each.request) for each in batch])
            if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(batch):
                raise WrongAnswer(f"{self.declared.by} returned no list of {len(batch)} answers")
        except asyncio.CancelledError as error:
            # The function's own client may cancel what it has begun.
            if is_cancelled():
                raise
            self.fail(batch, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's function raises is a failure
            self.fail(batch, error)
        else:
            seconds = self.clock() - began
            self.durations.append(seconds)
            self.circuit.succeed()
            while self.tried:
                self.line_up(self.tried.popitem(last=False)[1])
            self.trouble = ""
            for question, answer in zip(batch, found, strict=True):
                self.settle(question, self.read_answer(question, answer, seconds))
        finally:
            self.flying -= 1

    def read_answer(self, question: Question, answer: object, seconds: float) -> Outcome:
        """Return what is recorded of an answer: also that it is none, or not of the declared columns."""
        tries = question.tries + 1
        if isinstance(answer, NoAnswer):
            reason = str(answer.reason)[:SHOWN].encode(errors="replace").decode()
            return Outcome(error=reason or "no answer", tries=tries, seconds=seconds)
        try:
            return Outcome(check_answer(answer, self.ask), tries=tries, seconds=seconds)
        except WrongAnswer as wrong:
            return Outcome(error=str(wrong), tries=tries, seconds=seconds)

    def fail(self, batch: list[Question], error: BaseException) -> None:
        """Let the questions of a call that has failed be asked again, or record what it failed with.

        While the system is away no question is given up: they wait until it is back. That it is away is not told by
        questions of decisions: they were not answered before, and may never be.
        """
        now = self.clock()
        self.failed += 1
        self.trouble = describe_error(error)
        if self.circuit.is_open or not all(each.decided for each in batch):
            self.circuit.fail(now)
        if self.circuit.is_open:
            # Behind all others: it may be this request alone that is never answered.
            self.tried.update((each.key, each) for each in batch)
            return
        for question in batch:
            question.tries += 1
            if question.tries > self.declared.retries and len(batch) == 1:
                self.settle(question, Outcome(error=self.trouble, tries=question.tries))
            else:
                wait = min(FIRST_RETRY * 2 ** (question.tries - 1), LONGEST_RETRY)
                heapq.heappush(self.later, (now + wait, id(question), question))
        self.changed.set()

    def settle(self, question: Question, outcome: Outcome) -> None:
        """Deliver what came of a question, and keep an answer as long as it is fresh."""
        del self.open[question.key]
        self.waiting -= len(question.rows)
        if self.ask.fresh and not outcome.error:
            self.fresh[question.key] = (self.clock() + self.ask.fresh.total_seconds(), outcome)
            if len(self.fresh) > MOST_FRESH:
                self.fresh.popitem(last=False)
        self.deliver(question, outcome)


def is_cancelled() -> bool:
    """Return whether somebody else wants the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
