"""Asks one question about the rows of a pipeline, and writes the answers: each row gets one, whatever is killed.

The topic says what was answered. Whoever opens it ends the writing of all others first, and then looks which rows
have no record: in the master up to an epoch, and in the topic from where the master has read it to (rule 24).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from seamline.asking.answer_values import encode_answer
from seamline.asking.asked_rows import RowsInHand
from seamline.asking.calls import Calls, Function
from seamline.asking.positions import Position, write_position
from seamline.asking.questions import AskedRow, Outcome, Place, Question
from seamline.asking.row_reading import RowReader
from seamline.asking.told import Listener
from seamline.kafka.transactions import TransactionWriter
from seamline.lake.storage.layout import Layout
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.protocol.control import AskDecision
from seamline.model.protocol.seam import NOTHING
from seamline.plan.stream.ask_counts import AskCount
from seamline.runtime.failpoints import hit_failpoint

log = logging.getLogger("seamline.asking")
T = TypeVar("T")
MOST_IN_HAND = 50_000
"""Rows that are taken up and have no record yet; others wait in the master."""
SLICE, QUIET_EVERY = 5_000, 0.5
"""Rows of a decision that are listed together; seconds between two looks at whether the stream has read a topic."""
MOST_NOTED = 200_000
"""Rows that are noted while a decision waits; with more of them it begins to wait anew."""
MOST_WRITTEN, MOST_BYTES = 5_000, 8 << 20
"""Records of one transaction, and their bytes but for the last one's."""
TICK, WRITES_EVERY, SAVES_EVERY, GRACE = 0.01, 0.02, 5.0, 5.0
LOOKS_AGAIN = 30.0
"""Seconds until it is asked again whether rows of another record version were validated again."""
BESIDE = ThreadPoolExecutor(4, thread_name_prefix="beside")
Answer = tuple[AskedRow, Outcome]


class Asker:
    """One process's asking of one question."""

    def __init__(
        self,
        ask: CompiledAsk,
        layout: Layout,
        reader: RowReader,
        listener: Listener,
        position: Position,
        function: Function,
    ) -> None:
        self.ask, self.layout, self.reader, self.listener = ask, layout, reader, listener
        self.position, self.saved = position, position
        self.hand = RowsInHand(position.epoch)
        self.answers: deque[Answer] = deque()
        self.calls = Calls(ask, function, self.receive)
        self.began = position.epoch
        """E when this process had ended all others: rows of later epochs have no record yet."""
        self.known: frozenset[Place] = frozenset()
        """Rows with a record that is not found beside them: epochs up to there have not read it, or not yet the row."""
        self.written: set[Place] = set()
        """Rows that got a record since a decision looked where the topic ends."""
        self.noting: float = NOTHING
        """Only rows of epochs up to here are noted there."""
        self.writing, self.held, self.waits = False, "", ""
        self.answered, self.errors, self.saved_at = 0, 0, time.monotonic()

    def receive(self, question: Question, outcome: Outcome) -> None:
        """Note what is to be written of the rows that wanted an answer."""
        self.answers.extend((row, outcome) for row in question.rows)

    async def run(self, open_writer: Callable[[], TransactionWriter]) -> None:
        """Ask until the driver wants no more; what is being asked then may still be answered for a while."""
        await in_thread(self.reader.request_fills)
        self.writer = await in_thread(open_writer)
        self.began, tail = await in_thread(self.reader.read_tail)
        self.known = tail | await in_thread(self.reader.find_early_records, self.began)
        log.info("Asking %s from epoch %s on", self.ask.name, self.position.epoch + 1)
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(each) for each in (self.take_up_rows(), self.carry_out_decisions())]
            calling, writing = group.create_task(self.calls.run()), group.create_task(self.write_answers())
            await self.wait_until(self.listener.over.is_set)
            for each in work:
                each.cancel()
            self.calls.over = True
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait_until(lambda: not self.calls.flying), GRACE)
            calling.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait_until(lambda: not self.answers and not self.writing), GRACE)
            writing.cancel()
        await self.save()

    async def wait_until(self, done: Callable[[], bool]) -> None:
        """Wait until something is so."""
        while not done():
            await asyncio.sleep(TICK)

    async def take_up_rows(self) -> None:
        """Take up the rows of one block of epochs after another, as long as there is room for more."""
        while True:
            await self.wait_until(self.may_take_more)
            block = await in_thread(self.reader.read_block, self.hand.taken, self.listener.word.epoch)
            if block.until <= self.hand.taken:
                first = self.hand.taken + 1
                name = self.reader.pipeline.name
                how = f"`seamline run {name}`, or `seamline quarantine replay {name}`"
                self.held = f"rows from epoch {first} on wait to be validated again: {how}"
                await asyncio.sleep(LOOKS_AGAIN)
                continue
            self.held = ""
            rows = block.rows
            if self.hand.taken < self.began or block.amends:
                until = max(self.began, block.until)
                there = await in_thread(self.reader.find_recorded, block, until)
                rows = [each for each in rows if each[0].place not in there]
            rows = [each for each in rows if each[0].place not in self.known]
            self.hand.take((row for row, _ in rows), block.until)
            await self.ask_about(rows)

    def may_take_more(self) -> bool:
        """Return whether there are epochs to look at, and room for their rows."""
        return self.listener.word.epoch > self.hand.taken and len(self.hand.places) < MOST_IN_HAND

    async def ask_about(self, rows: Iterable[tuple[AskedRow, dict[str, Any]]]) -> None:
        """Ask about rows; others get their turn between them."""
        for at, (row, request) in enumerate(rows, 1):
            self.calls.add(row, request)
            if at % 100 == 0:
                await asyncio.sleep(0)

    async def write_answers(self) -> None:
        """Write what came of questions, a transaction at a time, and let go of the rows that have it."""
        while True:
            await self.wait_until(lambda: bool(self.answers) or self.is_save_due())
            if self.answers:
                some, records = self.take_answers()
                hit_failpoint("answered")
                self.writing = True
                await in_thread(self.writer.write, records)
                hit_failpoint("recorded")
                for row, outcome in some:
                    self.finish(row, outcome)
                self.writing = False
            if self.is_save_due():
                await self.save()
            await asyncio.sleep(WRITES_EVERY)

    def take_answers(self) -> tuple[list[Answer], list[bytes]]:
        """Take the answers of the next transaction, with their records: no more than are written well in time."""
        some: list[Answer] = []
        records: list[bytes] = []
        room = MOST_BYTES
        while self.answers and len(some) < MOST_WRITTEN and room > 0:
            some.append(self.answers.popleft())
            records.append(encode_answer(self.ask, *some[-1]))
            room -= len(records[-1])
        return some, records

    def finish(self, row: AskedRow, outcome: Outcome) -> None:
        """Let go of a row whose record is in the topic."""
        self.hand.finish(row)
        self.answered += not outcome.error
        self.errors += bool(outcome.error)
        if row.epoch <= self.noting and not row.decided:
            self.written.add(row.place)

    def is_save_due(self) -> bool:
        """Return whether it is time to save how far it has come."""
        return time.monotonic() - self.saved_at >= SAVES_EVERY

    async def save(self) -> None:
        """Save how far it has come, where that is further than before."""
        self.saved_at = time.monotonic()
        self.position = replace(self.position, epoch=max(self.position.epoch, self.hand.finished))
        if self.position != self.saved:
            self.saved = self.position
            await in_thread(write_position, self.layout, self.ask.id, self.saved)

    async def carry_out_decisions(self) -> None:
        """Carry out one decision to ask again after another."""
        while True:
            await self.wait_until(lambda: self.listener.word.decisions > self.position.decided)
            decisions = await in_thread(self.reader.list_decisions)
            for decision in decisions[self.position.decided :]:
                if decision.ask == self.ask.name and decision.question in ("", self.ask.id):
                    await self.carry_out(decision)
                self.position = replace(self.position, decided=self.position.decided + 1)

    async def carry_out(self, decision: AskDecision) -> None:
        """Ask again about rows without an answer.

        The master has to have read all that was written before, and rows that get a record meanwhile are left out.
        """
        count, held = 0, await self.reach_quiet_epoch()
        for span in await in_thread(self.reader.list_intervals, decision.span):
            found = await in_thread(self.reader.read_unanswered, decision, span, held)
            for at in range(0, found.num_rows, SLICE):
                # Leaves room for new rows beside them.
                await self.wait_until(lambda: self.hand.decided < SLICE)
                rows = self.reader.list_rows(found.slice(at, SLICE), decided=True)
                rows = [
                    each
                    for each in rows
                    if each[0].place not in self.hand.places and each[0].place not in self.written
                ]
                for row, _ in rows:
                    self.hand.add(row)
                await self.ask_about(rows)
                count += len(rows)
        log.info("%s rows of %s are asked about again: %s", count, decision.span, decision.reason)
        self.written.clear()
        self.noting = NOTHING
        await self.wait_until(lambda: not self.hand.decided)

    async def reach_quiet_epoch(self) -> int:
        """Wait for an epoch up to which the stream has read all records, and all rows were taken up; return it.

        What is written from now on of rows up to there is noted.
        """
        self.noting = math.inf
        ends = await in_thread(self.reader.fetch_ends)
        while True:
            if len(self.written) > MOST_NOTED:
                # What they got is before the end that is fetched then.
                self.written.clear()
                ends = await in_thread(self.reader.fetch_ends)
            # A hole that is filled between both is in the epochs that are found then.
            passed = await in_thread(self.reader.request_fills)
            held = await in_thread(self.reader.find_reading_epoch, ends)
            if held is not None and not passed:
                break
            read = "the answers that were passed over" if passed else "the answers that were written before"
            self.waits = f"a decision waits until the stream has read {read}"
            await asyncio.sleep(QUIET_EVERY)
        self.waits = f"a decision waits until all rows up to epoch {held} are taken up"
        # What is taken up later is asked about anyway.
        await self.wait_until(lambda: self.hand.taken >= held)
        self.noting, self.waits = held, ""
        return held

    def count(self) -> AskCount:
        """Return what it has done, and has before it."""
        calls, durations = self.calls, sorted(self.calls.durations)
        now = time.monotonic()
        return AskCount(
            answered=self.answered,
            errors=self.errors,
            reused=calls.reused,
            waiting=len(self.hand.places),
            behind=max(self.listener.word.epoch - self.hand.finished, 0),
            flying=calls.flying,
            calls=calls.made,
            failures=calls.failed,
            oldest=round(calls.oldest, 3),
            p50=round(durations[len(durations) // 2], 6) if durations else 0.0,
            p99=round(durations[len(durations) * 99 // 100], 6) if durations else 0.0,
            away=round(now - calls.circuit.since, 3) if calls.circuit.is_open else 0.0,
            trouble=calls.trouble,
            held=self.held,
            waits=self.waits,
        )


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Do what blocks beside the loop, in threads that the function that asks has no use of."""
    return await asyncio.get_running_loop().run_in_executor(BESIDE, partial(work, *given))
