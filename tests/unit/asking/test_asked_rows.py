"""Rows of a real log that another system is asked about, and the records of it that the log has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.asking.payments import (
    ANSWERS,
    PAID,
    SCORED,
    SHOP,
    SOURCE,
    START,
    Log,
    Row,
    answer_of,
    compiled,
    row,
)

from seamline import Lookup
from seamline.asking import row_reading
from seamline.asking.questions import AskedRow, Outcome
from seamline.asking.row_reading import Block, RowReader
from seamline.kafka.connections import KafkaConnection
from seamline.lake.joins import asked_rows
from seamline.lake.joins.asked_rows import find_block_end
from seamline.lake.maintain.packing import BY_TIME, pack_table
from seamline.lake.tables.decided import list_fills
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.protocol.control import AskDecision
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.model.types.exact_json import dump_exact_json
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.plan.maintain.slice_upkeep import CommittedEpochs

DAY = Interval(START, START + timedelta(days=1))
ERRORS = AskDecision("scored", DAY, True, "ada", "mended", START)
Open = Callable[[CompiledPipeline], "World"]


class Admin:
    """The administration of a cluster with the two topics, whose ends a test says."""

    ends: Mapping[int, int] = {}
    beginnings: Mapping[int, int] = {0: 0}

    def __init__(self, connection: KafkaConnection) -> None:
        pass

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *given: object) -> None:
        pass

    def topic_id(self, name: str) -> str:
        return f"id of {name}"

    def end_offsets(self, name: str) -> Mapping[int, int]:
        assert name == ANSWERS
        return Admin.ends

    def beginning_offsets(self, name: str) -> Mapping[int, int]:
        assert name == ANSWERS
        return Admin.beginnings


class World:
    """A log, and who reads it for the question."""

    def __init__(self, folder: Path, pipeline: CompiledPipeline) -> None:
        self.log = Log(folder, pipeline)
        [self.ask] = pipeline.asks
        self.reader = RowReader(self.ask, pipeline, self.log.layout, KafkaConnection("nowhere:1"))

    def requests(self, above: int = NOTHING, until: int = 99) -> dict[int, Any]:
        """Read what is asked, by the payment's offset."""
        return {each.offset: asked for each, asked in self.reader.read_block(above, until).rows}

    def answers(self, *offsets: int, outcome: Outcome | None = None, epoch: int = 1) -> int:
        """Commit an epoch of records about rows; return its number."""
        return self.log.answer(*(answer_of(self.ask, row(at, epoch), outcome) for at in offsets)).number


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a log in an empty folder."""
    monkeypatch.setattr(row_reading, "TopicAdmin", Admin)
    monkeypatch.setattr(Admin, "ends", {0: 0})
    return lambda pipeline: World(tmp_path, pipeline)


def test_rows_are_read_with_their_places(opened: Open) -> None:
    """By which their answers find them."""
    world = opened(compiled())
    world.log.pay({"user": "ada"}, {"user": "bob", "at": "2026-01-05T06:30:00.000001Z"})
    block = world.reader.read_block(NOTHING, 7)
    assert block.rows == [
        (AskedRow("id of paid", 0, 0, "2026-01-05T00:00:00Z", 0), {"user": "ada"}),
        (AskedRow("id of paid", 0, 1, "2026-01-05T06:30:00.000001Z", 0), {"user": "bob"}),
    ]
    assert (block.above, block.until) == (NOTHING, 7)


def test_only_rows_for_which_when_is_true_are_asked_about(opened: Open) -> None:
    """NULL is not true; nor is a row that the source's own condition leaves out."""
    source = replace(SOURCE, where="user IS NULL OR user <> 'test'")
    world = opened(compiled(source=source, when="amount > 10 OR user = 'vip'"))
    world.log.pay(
        {"amount": 11},
        {"amount": 10},
        {"amount": None},
        {"amount": None, "user": "vip"},
        {"amount": 99, "user": "test"},
        {"amount": 99, "user": None},
    )
    assert world.requests() == {0: {"user": "ada"}, 3: {"user": "vip"}, 5: {"user": None}}


def test_what_was_looked_up_may_choose_rows_and_be_asked(opened: Open, tmp_path: Path) -> None:
    """As the row was read: no table is asked again."""
    table = tmp_path / "tariff.csv"
    table.write_text("user,rate\nada,5\nbob,1\n")
    tariff = Lookup("tariff", str(table), on={"user": "user"}, columns=["rate INT"])
    made = compiled(
        source=replace(SOURCE, lookups=[tariff]), when="tariff_rate > 2", request={"rate": "tariff_rate"}
    )
    world = opened(made)
    world.log.pay({}, {"user": "bob"}, {"user": "eve"}, {"user": None})
    table.write_text("user,rate\nada,9\nbob,9\neve,9\n")
    assert world.requests() == {0: {"rate": 5}}


def test_a_request_has_the_values_of_its_row(opened: Open) -> None:
    """Of any type, and none of them as a text that somebody would have to read."""
    source = replace(
        SOURCE,
        schema="id INT, user STRING, n DECIMAL(20,2), d DOUBLE, day DATE, at TIMESTAMP, "
        "s STRUCT<a: INT, b: STRING>, l ARRAY<STRING>, m MAP<STRING, INT>",
    )
    names = ("id", "n", "d", "day", "at", "s", "l", "m")
    asked = {**{name: name for name in names}, "big": "n > 100", "none": "CAST(NULL AS STRING)"}
    world = opened(compiled(source=source, request=asked))
    full = {
        "id": 7,
        "n": Decimal("123456789012345678.25"),
        "d": 0.1,
        "day": "2026-01-05",
        "s": {"a": 1, "b": "x"},
        "l": ["a", None],
        "m": {"k": 2},
    }
    at: Row = {"at": format_utc_instant(START)}
    world.log.commit({PAID: [{**full, **at}, at]})
    found = world.requests()
    assert found[0] == {
        "id": 7,
        "n": Decimal("123456789012345678.25"),
        "d": 0.1,
        "day": date(2026, 1, 5),
        "at": START,
        "s": {"a": 1, "b": "x"},
        "l": ["a", None],
        "m": [("k", 2)],
        "big": True,
        "none": None,
    }
    assert found[1] == {**dict.fromkeys(found[0]), "at": START}


def test_blocks_are_of_about_as_many_rows(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog of a week is looked at piece by piece: each ends with an epoch."""
    monkeypatch.setattr(asked_rows, "BLOCK", 5)
    world = opened(compiled())
    for _ in range(7):
        world.log.pay({}, {})
    last = world.log.writer.master.epoch
    above, seen = NOTHING, []
    while above < last:
        block = world.reader.read_block(above, last)
        assert block.until > above
        seen += [each.offset for each, _ in block.rows]
        assert len(block.rows) <= 6
        above = block.until
    assert sorted(seen) == [*range(14)]


def test_a_block_ends_where_the_driver_stands(opened: Open) -> None:
    """What the master has of later epochs has not been told: it may be lost."""
    world = opened(compiled())
    first, second = world.log.pay({}).number, world.log.pay({}).number
    assert world.requests(until=first) == {0: {"user": "ada"}}
    assert world.requests(first, second) == {1: {"user": "ada"}}
    assert find_block_end(world.log.pipeline, world.log.layout, second, second + 1) == second + 1


def test_numbers_may_jump(opened: Open) -> None:
    """By a million, where a line of the log begins."""
    world = opened(compiled())
    world.log.pay({})
    later = world.log.commit({PAID: [answerless()]}, by=1_000_000).number
    assert later >= 1_000_000
    assert world.requests(0, later).keys() == {1}


def answerless() -> Mapping[str, Any]:
    """Return a payment as the topic has it."""
    return {"id": 9, "user": "ada", "amount": 100, "at": format_utc_instant(START)}


def test_a_packed_file_is_looked_at_piece_by_piece(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep makes one file of a day's: who has been down for it would take up all of its rows at once."""
    monkeypatch.setattr(asked_rows, "BLOCK", 5)
    world = opened(compiled())
    for _ in range(20):
        world.log.pay({}, {})
    last = world.log.writer.master.epoch
    table = world.log.writer.master.table
    pack_table(table, CommittedEpochs(range(last + 1), last=last), order=BY_TIME)
    assert table.actions().num_rows == 1
    sizes, above = [], NOTHING
    while above < last:
        block = world.reader.read_block(above, last)
        sizes.append(len(block.rows))
        above = block.until
    assert sum(sizes) == 40
    assert max(sizes) <= 10


FAR = ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-05:00", "0000-01-01T00:00:00Z")
"""Instants that a record may have. The last two are none of Python's; a file that has one lacks its statistics."""


def test_answers_of_another_record_version_hold_nobody_back(opened: Open, tmp_path: Path) -> None:
    """Those are what a stream reads last before its definition changes: all would wait for the next build."""
    world = opened(compiled())
    first = world.log.pay({}).number
    world.answers(0)
    later = Log(tmp_path, compiled(columns=["risk INT", "model"]), token=2)
    last = later.pay({}).number
    [ask] = later.pipeline.asks
    reader = RowReader(ask, later.pipeline, later.layout, KafkaConnection("nowhere:1"))
    block = reader.read_block(first, last)
    assert [each.offset for each, _ in block.rows] == [1]


def test_nor_do_answers_to_another_question(opened: Open, tmp_path: Path) -> None:
    """They are no rows of this one's source, either."""
    both = replace(SHOP, derive=[SCORED, replace(SCORED, name="owner")])
    log = Log(tmp_path, compile_pipeline(both))
    first = log.pay({}).number
    log.commit({log.pipeline.asks[1].topic: [answer_of(log.pipeline.asks[1], row(0, first))]})
    wider = replace(SCORED, columns=["risk INT", "model"])
    later = Log(tmp_path, compile_pipeline(replace(both, derive=[wider, both.derive[1]])), token=2)
    last = later.pay({}).number
    reader = RowReader(later.pipeline.asks[0], later.pipeline, later.layout, KafkaConnection("nowhere:1"))
    assert [each.offset for each, _ in reader.read_block(first, last).rows] == [1]


def test_a_record_of_another_record_version_is_a_record(opened: Open) -> None:
    """Its row is validated again before it is: whoever does not see it asks for a second answer."""
    world = opened(compiled())
    first = world.log.pay({}, {}).number
    last = world.answers(0)
    changed = compiled(columns=["risk INT", "model"])
    reader = RowReader(changed.asks[0], changed, world.log.layout, KafkaConnection("nowhere:1"))
    block = world.reader.read_block(NOTHING, first)
    assert len(block.rows) == 2
    assert reader.find_recorded(block, last) == {row(0).place}


@pytest.mark.parametrize("at", FAR)
@pytest.mark.parametrize("asked", [{"user": "user"}, {"until": "until"}])
def test_an_instant_far_away_ends_no_process(opened: Open, at: str, asked: Mapping[str, str]) -> None:
    """It is often written for one that never comes. The next process would end at this row, too."""
    source = replace(SOURCE, schema=f"{SOURCE.schema}, until TIMESTAMP")
    world = opened(compiled(source=source, request=asked))
    world.log.pay({"until": at}, {})
    assert world.requests().keys() == {0, 1}


def test_rows_of_another_record_version_are_not_passed_over(opened: Open) -> None:
    """They wait for an answer while a definition changes; they come when they are validated again, or as they are."""
    world = opened(compiled())
    epoch = world.log.pay({}, {}).number
    changed = compiled(columns=["risk INT", "model"])
    [ask] = changed.asks
    assert ask.id == world.ask.id
    reader = RowReader(ask, changed, world.log.layout, KafkaConnection("nowhere:1"))
    block = reader.read_block(NOTHING, epoch)
    assert block.rows or block.until < epoch


def test_records_of_rows_are_found_by_their_place(opened: Open) -> None:
    """An error is one, too; that of another version is none."""
    world = opened(compiled(version="2"))
    world.log.pay({}, {}, {}, {})
    world.answers(0)
    world.answers(1, outcome=Outcome(error="timeout"))
    old = answer_of(world.ask, row(2))
    last = world.log.answer({**old, "scored_version": "1"}).number
    block = world.reader.read_block(NOTHING, last)
    assert world.reader.find_recorded(block, last) == {row(0).place, row(1).place}
    assert world.reader.find_recorded(block, last - 2) == {row(0).place}
    assert world.reader.find_recorded(replace(block, rows=[]), last) == set()


def test_a_record_has_its_rows_time_to_the_microsecond(opened: Open) -> None:
    """Records are looked for among those of the rows' times: one that is off by a little would be asked again."""
    world = opened(compiled())
    times = ["2026-01-05T06:30:00.000001Z", "2026-01-05T06:30:00.999999Z"]
    epoch = world.log.pay(*({"at": at} for at in times)).number
    block = world.reader.read_block(NOTHING, epoch)
    records = [answer_of(world.ask, each) for each, _ in block.rows]
    last = world.log.answer(*records).number
    assert world.reader.find_recorded(block, last) == {each.place for each, _ in block.rows}
    assert block.times == (
        (
            micros(datetime(2026, 1, 5, 6, 30, 0, 1, UTC)),
            micros(datetime(2026, 1, 5, 6, 30, 0, 999_999, UTC)) + 1,
        ),
    )


def micros(at: datetime) -> int:
    """Return the microseconds since 1970."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_rows_without_an_answer_are_those_that_failed_and_those_nobody_asked(opened: Open) -> None:
    """A row that has failed and was answered later has its answer."""
    world = opened(compiled())
    world.log.pay({}, {}, {}, {}, {"at": "2026-01-06T00:00:00Z"})
    world.answers(1, 2, outcome=Outcome(error="timeout"))
    held = world.answers(0, 2)

    def found(decision: AskDecision, until: int = held) -> set[int]:
        read = world.reader.read_unanswered(decision, DAY, until)
        rows = world.reader.list_rows(read, decided=True)
        assert all(each.decided for each, _ in rows)
        return {each.offset for each, _ in rows}

    assert found(ERRORS) == {1}
    assert found(replace(ERRORS, only_errors=False)) == {1, 3}
    assert found(ERRORS, held - 1) == {1, 2}


def test_records_that_come_before_their_rows_are_remembered(opened: Open) -> None:
    """The master has lost epochs, and reads the topics anew in another order: the row would be asked about again."""
    world = opened(compiled())
    world.log.pay({}, {})
    world.answers(0)
    early = world.log.commit({ANSWERS: [answer_of(world.ask, row(at)) for at in (1, 2, 5)]}, by=1_000_000)
    assert world.reader.find_early_records(early.number) == {row(2).place, row(5).place}
    assert world.reader.find_early_records(early.number - 1) == frozenset()
    world.log.pay({})
    assert world.reader.find_early_records(early.number) == {row(5).place}


def test_a_log_that_has_lost_nothing_has_no_early_records(opened: Open) -> None:
    """Whoever starts looks at no file for it."""
    world = opened(compiled())
    world.log.pay({})
    last = world.answers(0, 7)
    assert world.reader.find_early_records(last) == frozenset()


def test_the_master_says_up_to_where_it_has_read_the_topic(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail begins there; a decision waits for it."""
    world = opened(compiled())
    assert world.reader.read_position([0, 1]) == (NOTHING, {})
    world.log.pay({}, {})
    held = world.answers(0, 1)
    assert world.reader.read_position([0, 1]) == (held, {0: 2})
    assert world.reader.find_reading_epoch({0: 2, 1: 0}) == held
    assert world.reader.find_reading_epoch({0: 3, 1: 0}) is None
    assert world.reader.find_reading_epoch({0: 2, 1: 1}) is None
    monkeypatch.setattr(Admin, "beginnings", {0: 0, 1: 50})
    monkeypatch.setattr(Admin, "ends", {0: 2, 1: 50})
    assert world.reader.fetch_ends() == {0: 2}, "of a partition that has nothing there is nothing to wait for"


def test_the_tail_has_the_records_that_the_master_has_not_read(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this version of the question; decimals in them are no matter."""
    world = opened(compiled())
    world.log.pay({}, {})
    held = world.answers(0)
    asked: list[Mapping[int, int]] = []

    def tail(connection: KafkaConnection, topic: str, starts: Mapping[int, int]) -> list[bytes]:
        asked.append(starts)
        return [encoded({**answer_of(world.ask, row(1)), "scored_risk": 1.5}), encoded(other)]

    other = {**answer_of(world.ask, row(2)), "scored_version": "other"}
    monkeypatch.setattr(row_reading, "read_committed_tail", tail)
    monkeypatch.setattr(Admin, "ends", {0: 3})
    assert world.reader.read_tail() == (held, frozenset([row(1).place]))
    assert asked == [{0: 1}]


def test_what_was_passed_over_of_the_topic_is_read_after_all(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row would count twice that is asked about again before that: the tail begins there, and a fill is requested."""
    world = opened(compiled())
    world.log.pay({}, {})
    world.log.pass_over(ANSWERS, 3)
    world.log.pass_over(PAID, 2)
    world.answers(0)
    asked: list[tuple[Mapping[int, int], ...]] = []

    def tail(connection: KafkaConnection, topic: str, *bounds: Mapping[int, int]) -> list[bytes]:
        asked.append(bounds)
        return []

    monkeypatch.setattr(row_reading, "read_committed_tail", tail)
    monkeypatch.setattr(Admin, "ends", {0: 4})
    monkeypatch.setattr(Admin, "beginnings", {0: 1})
    lane = Lane(f"id of {ANSWERS}", 0)
    assert world.reader.list_passed_over() == [OffsetRange(lane, 1, 3)]
    world.reader.read_tail()
    assert asked == [({0: 4},), ({0: 1}, {0: 3})], "what is behind the hole was read"
    for _ in range(2):
        assert world.reader.request_fills()
    assert list_fills(world.log.layout) == (OffsetRange(lane, 1, 3),)


def test_rows_that_were_passed_over_are_looked_up_among_older_records(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their answers may have been read before them, and another process may have known that, and gone."""
    world = opened(compiled())
    world.log.pass_over(PAID, 3)
    world.log.pass_over(ANSWERS, 2)
    answers = [answer_of(world.ask, row(at)) for at in (0, 1)]
    held = world.log.amend(ANSWERS, 0, *answers).number
    monkeypatch.setattr(row_reading, "read_committed_tail", lambda *_: [])
    monkeypatch.setattr(Admin, "ends", {0: 2})
    assert world.reader.read_tail() == (held, frozenset())
    paid = [{"id": at, "user": "ada", "amount": 100, "at": format_utc_instant(START)} for at in range(3)]
    last = world.log.amend(PAID, 0, *paid).number
    block = world.reader.read_block(held, last)
    assert block.amends
    assert world.reader.find_recorded(block, last) == {row(0).place, row(1).place}
    world.log.pay({})
    assert not world.reader.read_block(last, last + 1).amends


def test_what_kafka_has_lost_is_asked_for_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole that can never be filled is there for ever; each look would ask Kafka again."""
    world, asked = opened(compiled()), []
    world.log.pass_over(ANSWERS, 3)
    monkeypatch.setattr(Admin, "beginnings", {0: 3})
    monkeypatch.setattr(Admin, "__init__", lambda _, connection: asked.append(connection))
    for _ in range(3):
        assert not world.reader.request_fills()
        assert world.reader.find_reading_epoch({0: 3}) is not None
    assert len(asked) == 1


def test_what_kafka_has_lost_is_waited_for_by_nobody(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    world = opened(compiled())
    world.log.pass_over(ANSWERS, 3)
    for beginnings in ({0: 3}, {}):
        monkeypatch.setattr(Admin, "beginnings", beginnings)
        assert not world.reader.request_fills()
    assert not list_fills(world.log.layout)


def encoded(record: Mapping[str, Any]) -> bytes:
    """Write a record."""
    return dump_exact_json(record).encode()


def test_no_rows_have_no_times(opened: Open) -> None:
    world = opened(compiled())
    world.log.commit({})
    assert world.reader.read_block(NOTHING, 5) == Block([], 5, NOTHING, ())


def test_a_decision_looks_at_intervals_that_have_rows(opened: Open) -> None:
    """Years of hours without any would be looked at one by one."""
    world = opened(compiled())
    world.log.pay({}, {"at": "2026-01-02T00:00:00Z"})
    early = Interval(START - timedelta(days=3), START - timedelta(days=2))
    assert world.reader.list_intervals(Interval(early.start, DAY.end)) == [early, DAY]
    moved = Verdict(0, "a", {"2026-01-08T00:00:00Z": 1})
    changed = compiled(source=replace(SOURCE, where="amount > 0"))
    Reprocessed(changed, world.log.layout).commit([], [moved])
    reader = RowReader(changed.asks[0], changed, world.log.layout, KafkaConnection("nowhere:1"))
    week = Interval(START, START + timedelta(days=7))
    assert [each.id for each in reader.list_intervals(week)] == ["2026-01-08T00:00:00Z"], (
        "as it was validated again"
    )
    cut = Interval(START, START + timedelta(hours=1))
    assert world.reader.list_intervals(cut) == [cut], "intervals were hours once"
