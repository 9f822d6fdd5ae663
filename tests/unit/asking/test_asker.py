"""One process that asks: each row gets a record, once, and the position passes none that has not got one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.asking.desk import ROUNDS, System
from tests.unit.asking.payments import START, question, row

from seamline.asking import asker as module
from seamline.asking.asker import Asker, in_thread
from seamline.asking.positions import Position, read_position, write_position
from seamline.asking.questions import AskedRow, Place
from seamline.asking.row_reading import Asked, Block
from seamline.asking.told import Word
from seamline.lake.storage.layout import Layout
from seamline.model.errors import FenceLost
from seamline.model.protocol.control import AskDecision
from seamline.model.time.intervals import Interval

DAY = Interval(START, datetime(2026, 1, 6, tzinfo=UTC))
AGAIN = AskDecision("scored", DAY, False, "ada", "mended", START)
LIMIT = 30


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look as often as the loop turns, and save whenever something is written."""
    for name in ("TICK", "WRITES_EVERY"):
        monkeypatch.setattr(module, name, 0.0)


class Master:
    """What an asker reads: rows by epoch, and the records of the topic that the master or nobody has read."""

    def __init__(self) -> None:
        self.rows: list[AskedRow] = []
        self.tail: frozenset[Place] = frozenset()
        self.early: frozenset[Place] = frozenset()
        self.recorded: dict[Place, int] = {}
        """The epoch that has read a record of a row."""
        self.held = -1
        self.decisions: list[AskDecision] = []
        self.topic: list[dict[str, Any]] = []
        self.reads = True
        """Whether the stream reads the topic."""
        self.blocks: list[tuple[int, int]] = []
        self.passed, self.requested = False, 0
        self.amending: set[int] = set()

    def list_intervals(self, span: Interval) -> list[Interval]:
        return [span]

    def read_tail(self) -> tuple[int, frozenset[Place]]:
        return self.held, self.tail

    def find_early_records(self, held: int) -> frozenset[Place]:
        return self.early

    def request_fills(self) -> bool:
        self.requested += 1
        return self.passed

    def read_block(self, above: int, until: int) -> Block:
        """Read an epoch."""
        self.blocks.append((above, until))
        end = min((each.epoch for each in self.rows if above < each.epoch <= until), default=until)
        found = [(each, {"user": f"user {each.offset}"}) for each in self.rows if above < each.epoch <= end]
        amends = any(above < each <= end for each in self.amending)
        return Block(found, end, above, (), amends)

    def find_recorded(self, block: Block, until: int) -> set[Place]:
        above = float("-inf") if block.amends else block.above
        return {place for place, epoch in self.recorded.items() if above < epoch <= until}

    def fetch_ends(self) -> Mapping[int, int]:
        return {0: len(self.topic)}

    def find_reading_epoch(self, ends: Mapping[int, int]) -> int | None:
        return self.held if self.reads else None

    def read_unanswered(self, decision: AskDecision, span: Interval, until: int) -> pa.Table:
        """Read the rows without a record that the stream has read, as the numbers of those rows."""
        found = [
            at
            for at, each in enumerate(self.rows)
            if each.epoch <= until and self.recorded.get(each.place, until) >= until
        ]
        return pa.table({"at": pa.array(found, pa.int64())})

    def list_rows(self, found: pa.Table, *, decided: bool) -> list[Asked]:
        rows = [self.rows[at] for at in found["at"].to_pylist()]
        return [(replace(each, decided=decided), {"user": f"user {each.offset}"}) for each in rows]

    def list_decisions(self) -> tuple[AskDecision, ...]:
        return tuple(self.decisions)


class Topic:
    """A writer to a topic in memory."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.sizes: list[int] = []
        self.holds = False
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def write(self, values: Sequence[bytes]) -> None:
        self.begun.set()
        assert not self.holds or self.goes_on.wait(LIMIT)
        if self.error:
            raise self.error
        self.sizes.append(len(values))
        self.records += map(json.loads, values)

    @property
    def offsets(self) -> list[int]:
        """The rows that have a record, by their offsets."""
        return [each["scored_offset"] for each in self.records]


class Life:
    """An asker's process."""

    def __init__(self, folder: Path, position: Position, **changes: Any) -> None:
        self.layout, self.master, self.topic, self.system = (
            Layout(folder, "shop"),
            Master(),
            Topic(),
            System(),
        )
        self.driver = SimpleNamespace(word=Word(position.epoch), over=threading.Event())
        self.ask = question(**changes)
        made: Any = (self.ask, self.layout, self.master, self.driver, position, self.system.ask)
        self.asker = Asker(*made)

    def hold(self, *counts: int) -> None:
        """Hold epochs of so many rows each, and tell of them."""
        for count in counts:
            epoch = self.driver.word.epoch + 1
            first = len(self.master.rows)
            self.master.rows += [row(at, epoch) for at in range(first, first + count)]
            self.driver.word = replace(self.driver.word, epoch=epoch)

    def decide(self, *decisions: AskDecision) -> None:
        """Let rows be asked about again."""
        self.master.decisions += decisions
        self.driver.word = replace(self.driver.word, decisions=len(self.master.decisions))

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(LIMIT):
            while not done():
                await asyncio.sleep(0)

    async def turns(self) -> None:
        """Let all happen that can happen by itself."""
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def written(self, count: int) -> None:
        """Wait until so many rows were let go of, and nothing is in hand."""
        await self.until(
            lambda: self.asker.answered + self.asker.errors >= count and not self.asker.hand.places
        )

    def tell(self, story: Callable[[], Awaitable[None]]) -> None:
        """Live while a story is told."""

        async def both() -> None:
            living = asyncio.create_task(self.asker.run(lambda: self.topic))  # type: ignore[arg-type, return-value]
            telling = asyncio.ensure_future(story())
            await asyncio.wait([living, telling], return_when=asyncio.FIRST_COMPLETED)
            self.driver.over.set()
            self.topic.goes_on.set()
            if telling.done():
                telling.result()
            telling.cancel()
            await living

        asyncio.run(both())

    @property
    def position(self) -> Position:
        """The position that is on disk."""
        return read_position(self.layout, self.ask.id)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path, Position(3))


def test_each_row_gets_a_record_and_is_passed(life: Life) -> None:
    """Errors, too: a row that nobody can answer is no reason to look at it for ever."""
    life.hold(3, 0, 2)
    life.system.answers = {"user 1": {"risk": "high"}}

    async def story() -> None:
        await life.written(5)
        life.hold(1)
        await life.written(6)

    life.tell(story)
    assert sorted(life.topic.offsets) == [*range(6)]
    assert {
        each["scored_offset"]: each["scored_error"] for each in life.topic.records if each["scored_error"]
    } == {1: "risk is 'high', not INT"}
    assert life.position == Position(7)
    said = life.asker.count()
    assert (said.answered, said.errors, said.waiting, said.behind) == (5, 1, 0, 0)
    assert (said.calls, said.failures, said.away, said.trouble) == (6, 0, 0.0, "")


def test_rows_that_have_a_record_are_not_asked_about(life: Life) -> None:
    """Wherever it is: in the topic alone, read before its row, or read by the epochs up to E."""
    life.hold(4, 2)
    life.master.held = 5
    life.master.tail, life.master.early = frozenset([row(0).place]), frozenset([row(5).place])
    life.master.recorded = {row(1).place: 5}
    life.tell(lambda: life.written(3))
    assert sorted(life.topic.offsets) == [2, 3, 4]
    assert life.position == Position(5)


def test_the_position_waits_for_the_oldest_row(life: Life) -> None:
    """A process that is killed here asks about it again; those behind it have their records."""
    life.system.gated = True
    life.hold(1, 1, 1)

    async def story() -> None:
        await life.until(lambda: len(life.system.gates) == 3)
        life.system.gates[2].set()
        life.system.gates[1].set()
        await life.until(lambda: life.asker.answered == 2)
        await life.asker.save()
        assert life.asker.position.epoch == 3
        life.system.gates[0].set()
        await life.written(3)

    life.tell(story)
    assert life.topic.offsets == [2, 1, 0]
    assert life.position == Position(6)


def test_records_are_written_in_transactions_of_a_size(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker aborts one that takes a minute."""
    monkeypatch.setattr(module, "MOST_WRITTEN", 4)
    life.hold(30)
    life.tell(lambda: life.written(30))
    assert sum(life.topic.sizes) == 30
    assert max(life.topic.sizes) <= 4


def test_whoever_is_fenced_off_ends(life: Life) -> None:
    """Another process goes on; what this one believes is no longer so."""
    life.topic.error = FenceLost("another process", hint="it goes on.")
    life.hold(2)

    async def never() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        life.tell(never)
    assert raised.group_contains(FenceLost)
    assert not life.layout.asked(life.ask.id).exists(), "nothing was said"


def test_only_so_many_rows_are_in_hand(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of a week is a week of rows: they wait in the master, and not in memory."""
    monkeypatch.setattr(module, "MOST_IN_HAND", 10)
    life.system.away = True
    life.hold(*[4] * 50)

    async def story() -> None:
        await life.until(lambda: life.asker.calls.circuit.is_open or len(life.asker.hand.places) >= 12)
        await life.turns()
        assert len(life.asker.hand.places) == 12
        assert life.asker.count().behind == 50

    life.tell(story)
    assert life.asker.position == Position(3)


def test_what_is_being_asked_may_still_be_answered(life: Life) -> None:
    """The driver ends: nothing new is taken up, and no answer is thrown away that comes soon, or is being written."""
    life.system.gated, life.topic.holds = True, True
    life.hold(2)

    async def story() -> None:
        await life.until(lambda: life.system.flying == 2)
        life.driver.over.set()
        life.hold(2)
        await life.turns()
        life.system.let()
        await life.until(life.topic.begun.is_set)
        await life.turns()
        life.topic.goes_on.set()
        await life.written(2)

    life.tell(story)
    assert sorted(life.topic.offsets) == [0, 1]
    assert life.position == Position(4)


def test_a_decision_asks_again_about_rows_without_an_answer(life: Life) -> None:
    """Those of before the question's birth among them, and each decision once."""
    life.hold(0, 0)
    life.master.rows = [row(0, 1), row(1, 2)]
    life.master.held = 5
    life.master.recorded = {row(1).place: 2}
    life.decide(replace(AGAIN, ask="owner"), AGAIN)

    async def story() -> None:
        await life.until(lambda: life.asker.position.decided == 2)
        await life.written(1)

    life.tell(story)
    assert life.topic.offsets == [0]
    assert life.position == Position(5, 2)


def test_a_decision_waits_until_the_stream_has_read_the_topic(life: Life) -> None:
    """Who does not know of an answer asks for a second one."""
    life.master.reads = False
    life.hold(1)
    life.master.held = 4
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: life.asker.noting > 0)
        await life.until(lambda: life.asker.answered == 1)
        life.master.recorded = {row(0).place: 5}
        life.hold(0)
        life.master.held, life.master.reads = 5, True
        await life.until(lambda: life.asker.position.decided == 1)

    life.tell(story)
    assert life.topic.offsets == [0]


def test_rows_that_were_passed_over_may_have_records_of_before(life: Life) -> None:
    """A block that fills a hole is compared with the log, however late it comes."""
    life.master.amending = {5}
    life.master.recorded = {row(1).place: -1}

    async def story() -> None:
        life.hold(1)
        await life.written(1)
        life.hold(2)
        await life.written(2)

    life.tell(story)
    assert life.topic.offsets == [0, 2]


def test_new_rows_are_taken_up_beside_a_decision(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be about a million rows, and its system slow."""
    monkeypatch.setattr(module, "MOST_IN_HAND", 50)
    monkeypatch.setattr(module, "SLICE", 10)
    life.hold(0)
    life.master.rows, life.master.held = [row(at, 2) for at in range(200)], 4
    life.system.gated = True
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: life.asker.hand.decided >= 10)
        await life.turns()
        life.hold(5)
        await life.until(lambda: any(each.offset >= 200 for each in life.asker.hand.places.values()))
        assert life.asker.hand.decided < 20
        life.system.gated = False
        life.system.let()
        await life.written(205)

    life.tell(story)
    assert sorted(life.topic.offsets) == [*range(205)]


def test_a_decision_that_waits_for_long_notes_no_more_than_it_may(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream reads on, and what was passed over is not filled for hours: it begins to wait anew."""
    monkeypatch.setattr(module, "MOST_NOTED", 10)
    monkeypatch.setattr(module, "QUIET_EVERY", 0.0)
    life.master.passed = True
    life.hold(0)
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: life.asker.noting > 0)
        for _ in range(10):
            life.hold(5)
            await life.until(
                lambda: not life.asker.hand.places and life.asker.hand.taken == life.driver.word.epoch
            )
            await life.until(lambda: len(life.asker.written) <= 15)
        life.master.passed, life.master.held = False, life.driver.word.epoch
        life.master.recorded = {each.place: each.epoch - 1 for each in life.master.rows}
        await life.until(lambda: life.asker.position.decided == 1)

    life.tell(story)
    assert len(life.topic.offsets) == len({*life.topic.offsets}) == 50


def test_a_decision_says_what_it_waits_for(life: Life) -> None:
    """First for the stream, then for rows to be taken up: the system may be away for hours."""
    life.master.reads = False
    life.hold(1)
    life.system.gated = True
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: "the answers that were written before" in life.asker.waits)
        life.master.held, life.master.reads = 9, True
        await life.until(lambda: life.asker.waits.endswith("until all rows up to epoch 9 are taken up"))
        life.hold(0, 0, 0, 0, 0)
        life.system.gated = False
        life.system.let()
        await life.until(lambda: life.asker.position.decided == 1)
        assert not life.asker.waits

    life.tell(story)


def test_a_decision_notes_only_rows_that_it_could_mean(life: Life) -> None:
    """A slow one would keep the places of all rows that are answered meanwhile, for hours."""
    life.hold(0)
    life.master.rows, life.master.held = [row(0, 2)], 4
    life.system.gated = True
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: len(life.system.gates) == 1)
        life.system.gated = False
        life.hold(20, 20)
        await life.until(lambda: life.asker.answered == 40)
        assert not life.asker.written
        life.system.let()
        await life.until(lambda: life.asker.position.decided == 1)

    life.tell(story)


def test_a_decision_waits_until_what_was_passed_over_is_read(life: Life) -> None:
    """Its answers would count beside those that are asked for."""
    life.master.passed = True
    life.hold(1)
    life.master.rows = [row(0, 1)]
    life.master.held = 4
    life.decide(AGAIN)

    async def story() -> None:
        await life.until(lambda: life.master.requested > 2)
        assert not life.topic.records
        life.master.recorded = {row(0).place: 3}
        life.master.passed = False
        await life.until(lambda: life.asker.position.decided == 1)

    life.tell(story)
    assert not life.topic.records


def test_a_decision_leaves_out_what_is_in_hand_or_not_yet(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a backlog have no answer either, and are asked about anyway: two answers would count twice."""
    monkeypatch.setattr(module, "MOST_IN_HAND", 2)
    life.system.gated = True
    life.hold(2, 2, 2)
    life.master.held = 6
    life.decide(AGAIN)

    async def story() -> None:
        while len(life.topic.records) < 6:
            life.system.let()
            await asyncio.sleep(0)
        await life.until(lambda: life.asker.position.decided == 1)
        await life.written(6)

    life.tell(story)
    assert Counter(life.topic.offsets) == Counter(range(6))
    assert life.position == Position(6, 1)


class Counted(str):
    """A topic's id that counts how often a place is looked up by it."""

    __slots__ = ()
    times = 0

    def __hash__(self) -> int:
        Counted.times += 1
        return super().__hash__()


def test_a_decision_about_many_rows_looks_at_each_a_few_times(life: Life) -> None:
    """Fifty thousand rows beside fifty thousand in hand: the loop stood still for hours, with all calls in it."""
    rows = 300
    life.hold(0)
    life.master.held = 4
    life.master.rows = [replace(row(at, 2), topic_id=Counted("id of paid")) for at in range(rows)]
    life.system.gated = True
    waiting = [replace(row(rows + at, 4), topic_id=Counted("id of paid")) for at in range(rows)]
    for each in waiting:
        life.asker.hand.add(each)
    life.decide(AGAIN)
    Counted.times = 0

    async def story() -> None:
        await life.until(lambda: len(life.asker.hand.places) == 2 * rows)
        life.system.gated = False
        life.system.let()

    life.tell(story)
    assert Counted.times < 30 * rows


def test_what_is_decided_while_the_position_is_saved_is_kept(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file takes a while; a decision that is forgotten is carried out twice."""

    def write(*given: Any) -> None:
        life.asker.position = replace(life.asker.position, decided=1)
        write_position(*given)

    monkeypatch.setattr(module, "write_position", write)
    life.asker.hand.take([], 9)
    asyncio.run(life.asker.save())
    assert (life.asker.position, life.position) == (Position(9, 1), Position(9))
    monkeypatch.undo()
    asyncio.run(life.asker.save())
    assert life.position == Position(9, 1)


def test_what_the_asker_does_beside_the_loop_waits_for_no_call(life: Life) -> None:
    """A function may call a client that blocks by asyncio.to_thread, in all threads that the loop has."""
    used: list[object] = []

    class Noted(ThreadPoolExecutor):
        def submit(self, *given: Any, **named: Any) -> Future[Any]:
            used.append(given)
            return super().submit(*given, **named)

    async def story() -> None:
        asyncio.get_running_loop().set_default_executor(Noted(1))
        assert await in_thread(threading.current_thread) is not threading.current_thread()

    asyncio.run(story())
    assert not used


def test_the_clock_of_saving_is_no_bound_on_the_end(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was done since the last saving is saved at the end, and every few seconds meanwhile."""
    monkeypatch.setattr(module, "SAVES_EVERY", 0.0)
    life.hold(1)

    async def story() -> None:
        await life.written(1)
        await life.until(lambda: life.position == Position(4))

    life.tell(story)
    assert life.asker.saved == Position(4)
    assert life.asker.saved_at <= time.monotonic()
