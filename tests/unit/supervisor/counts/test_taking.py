"""Statements are taken of their topic, each once, whoever takes them at once and wherever one dies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.counts_world import FIRST, Orders, says

from seamline import Counts
from seamline.kafka.topic_ends import TopicEnds
from seamline.kafka.whole_records import Piece, WholeRecord
from seamline.lake.store.locations import Location
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.counts.statements_table import (
    StatementsTable,
    read_bad_statements,
    read_statements,
)
from seamline.lake.tables.decided import decide_failover
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.errors import KafkaUnavailable, Overtaken, RecordsReplaced, TopicMissing
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.counts.statement import list_current_statements
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Grid, Interval
from seamline.supervisor.counts import taking

SENT = datetime(2026, 1, 2, tzinfo=UTC)
LONG = Interval(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


def statement(producer: str, count: int, start: str = "00:00", end: str = "12:00") -> bytes:
    """Make the bytes of a statement about a part of the first day."""
    bounds = {"from": f"2026-01-01T{start}:00Z", "to": f"2026-01-01T{end}:00Z"}
    return json.dumps({"producer": producer, **bounds, "count": count}).encode()


@dataclass
class Broker:
    """A topic of statements: values by partition, the first offset that is left of each, and its id."""

    values: dict[int, list[bytes | None]] = field(default_factory=lambda: {0: [], 1: []})
    first: dict[int, int] = field(default_factory=dict)
    id: str = "a"
    at_once: int = 2

    def ends(self, *_: object, **__: object) -> TopicEnds:
        lanes = {part: Lane(self.id, part) for part in self.values}
        return TopicEnds(
            SENT,
            {self.id: "orders.counts"},
            {lane: self.first.get(part, 0) for part, lane in lanes.items()},
            {lane: len(self.values[part]) for part, lane in lanes.items()},
        )

    def read(self, _: object, __: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Piece]:
        at = {part: max(start, self.first.get(part, 0)) for part, (start, _) in ranges.items()}
        while any(at[part] < end for part, (_, end) in ranges.items()):
            records, reached = [], {}
            for part, (_, end) in ranges.items():
                until = min(at[part] + self.at_once, end)
                records += [
                    WholeRecord(part, offset, SENT + timedelta(seconds=offset), self.values[part][offset])
                    for offset in range(at[part], until)
                ]
                if until > at[part]:
                    at[part] = reached[part] = until
            yield Piece(tuple(records), reached)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(taking, "ends_of", made.ends)
    monkeypatch.setattr(taking, "read_whole_records", made.read)
    monkeypatch.setattr(taking, "read_airflow_connection", lambda *_: None)
    return made


def orders(warehouse: Location) -> Orders:
    return Orders(warehouse, Counts("orders.counts", producer="shop"))


def take(shop: Orders) -> taking.Taken:
    """Take what is new of the one topic."""
    [(source, counts)] = list_counting_sources(shop.compiled)
    return taking.take_statements(shop.compiled, shop.layout, source, counts, env={})


def taken(shop: Orders) -> list[tuple[int, int]]:
    """List the places of all that was taken."""
    rows = [*read_statements(shop.layout, "", FIRST), *read_bad_statements(shop.layout, "", LONG)]
    return sorted((row.lane.partition, row.offset) for row in rows)


def held(shop: Orders) -> list[tuple[str, int]]:
    """List the statements that hold."""
    current = list_current_statements(read_statements(shop.layout, "", FIRST))
    return [(name, each.count) for name, known in sorted(current.items()) for each in known]


@pytest.mark.everywhere
def test_each_record_is_taken_once_and_what_is_none_is_kept_with_its_reason(
    warehouse: Location, broker: Broker
) -> None:
    """Never silently dropped: who sent it reads why it does not count."""
    shop = orders(warehouse)
    bad = [b"{no", None, b"[]", statement("eu", -1), statement("eu", 1, "00:00", "00:00")]
    broker.values = {0: [statement("eu", 3), *bad], 1: [statement("us", 4)]}
    for _ in range(2):
        take(shop)
    assert taken(shop) == [(0, at) for at in range(6)] + [(1, 0)]
    assert held(shop) == [("eu", 3), ("us", 4)]
    wrong = sorted(read_bad_statements(shop.layout, "", LONG), key=lambda row: row.offset)
    assert [row.reason for row in wrong] == [
        "not JSON",
        "empty value",
        "not a JSON object",
        "count is not a whole number of 0 or more",
        "from is not before to",
    ]


def test_a_death_between_reading_and_committing_takes_nothing_twice(
    warehouse: Location, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and positions are one commit: what was committed before it stays, what was read after it is read again."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", at) for at in range(5)], 1: []}
    append, calls = StatementsTable.append, iter([True, False, True, False])

    def dies(self: StatementsTable, *given: object, **more: object) -> None:
        if not next(calls, True):
            raise KeyboardInterrupt
        append(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StatementsTable, "append", dies)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            take(shop)
    take(shop)
    assert taken(shop) == [(0, at) for at in range(5)]
    assert held(shop) == [("eu", 4)]


def test_who_is_to_stop_takes_no_more_and_the_next_takes_the_rest(
    warehouse: Location, broker: Broker
) -> None:
    """A supervisor that ends does not wait for months of statements."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", at) for at in range(5)], 1: []}
    asked = iter([False, False, True])
    told = taking.describe_taking(shop.compiled, shop.layout, env={}, stopping=lambda: next(asked, True))
    assert told == ["took 2 statements of orders.counts"]
    assert taken(shop) == [(0, 0), (0, 1)]
    take(shop)
    assert taken(shop) == [(0, at) for at in range(5)]


@pytest.mark.everywhere
def test_of_two_that_take_the_same_one_commits(
    warehouse: Location, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task and the supervisor both look: the second finds out, and looks again."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", 1), statement("eu", 2)], 1: []}
    append, overtaken = StatementsTable.append, []

    def beside(self: StatementsTable, *given: object, **more: object) -> None:
        if not overtaken:
            overtaken.append(True)
            monkeypatch.setattr(StatementsTable, "append", append)
            take(shop)
        with pytest.raises(Overtaken):
            append(self, *given, **more)  # type: ignore[arg-type]
        raise Overtaken("as it is", hint="look again.")

    monkeypatch.setattr(StatementsTable, "append", beside)
    take(shop)
    assert taken(shop) == [(0, 0), (0, 1)]


def test_a_topic_that_is_created_again_is_read_from_its_beginning(
    warehouse: Location, broker: Broker
) -> None:
    """Its offsets are other records'; what the old one said stays said."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", 1), statement("us", 2)], 1: []}
    take(shop)
    broker.id, broker.values = "b", {0: [statement("mars", 3)], 1: []}
    take(shop)
    assert held(shop) == [("eu", 1), ("mars", 3), ("us", 2)]


def test_statements_that_kafka_deleted_unread_are_named(warehouse: Location, broker: Broker) -> None:
    """A producer that has said it, and whose statement is gone, is not one that has said nothing."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", 1)], 1: []}
    take(shop)
    broker.values[0] += [statement("eu", 2), statement("us", 3)]
    broker.first = {0: 2}
    take(shop)
    [lost] = read_bad_statements(shop.layout, "", LONG)
    assert (lost.reason, lost.value) == (taking.LOST, "offsets 1 to 1")
    assert held(shop) == [("eu", 1), ("us", 3)]


def test_a_topic_that_has_lost_what_was_taken_is_told(warehouse: Location, broker: Broker) -> None:
    """As after an unclean election: what producers say from then on would be passed over without a word."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", 1), statement("eu", 2)], 1: []}
    take(shop)
    broker.values[0] = [statement("eu", 9)]
    with pytest.raises(RecordsReplaced, match=r"Partition 0 of 'orders.counts' ends at 1, .* taken up to 2"):
        take(shop)
    assert held(shop) == [("eu", 2)]


def test_an_error_that_nobody_knows_ends_no_upkeep(
    warehouse: Location, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements are taken before all else that upkeep does, which would never be done again."""

    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(taking, "read_whole_records", fail)
    shop = orders(warehouse)
    said = taking.describe_taking(shop.compiled, shop.layout, env={})
    assert said == ["statements of orders.counts were not taken: ValueError: odd"]


def test_a_broker_that_does_not_answer_harms_nothing(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate is made of what is there."""
    shop = orders(warehouse)

    def away(*_: object, **__: object) -> None:
        raise KafkaUnavailable("No broker answers.", hint="start it.")

    monkeypatch.setattr(taking, "read_airflow_connection", away)
    assert taking.describe_taking(shop.compiled, shop.layout, env={}) == [
        "statements of orders.counts were not taken: No broker answers."
    ]


def test_a_source_whose_topic_is_missing_keeps_no_other_from_being_taken(
    warehouse: Location, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources stand in no order: those after it would wait for ever."""
    shop = orders(warehouse)
    broker.values = {0: [statement("eu", 1)], 1: []}
    [(source, counts)] = list_counting_sources(shop.compiled)
    both = [(source, replace(counts, topic="gone")), (source, counts)]
    monkeypatch.setattr(taking, "list_counting_sources", lambda _: both)

    def ask(connection: object, topics: Sequence[str], **_: object) -> TopicEnds:
        if "gone" in topics:
            raise TopicMissing("There is no topic 'gone'.", hint="create it.")
        return broker.ends()

    monkeypatch.setattr(taking, "ends_of", ask)
    assert taking.describe_taking(shop.compiled, shop.layout, env={}) == [
        "statements of gone were not taken: There is no topic 'gone'.",
        "took 1 statements of orders.counts",
    ]


def test_statements_are_taken_by_the_connection_in_force(
    warehouse: Location, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failover producers write to the other cluster; the one that the definition names is gone."""
    shop, asked = orders(warehouse), list[str]()
    monkeypatch.setattr(taking, "read_airflow_connection", lambda name, _: asked.append(name))
    take(shop)
    begun = {Lane("n", 0): 0}
    other = Failover("kafka_b", "kafka_default", By.OFFSETS, {}, begun, False, None, "", "ada", "fire", SENT)
    control = ControlTable.ensure(shop.layout)
    lease = control.take("a person", process="", now=SENT)
    decide_failover(control, lease, other, ())
    take(shop)
    assert asked == ["kafka_default", "kafka_b"]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["eu", "us"]),
        st.integers(0, 3),
        st.sampled_from([("00:00", "06:00"), ("06:00", "12:00"), ("00:00", "12:00")]),
    ),
    max_size=4,
)


@given(
    lanes=st.tuples(RECORDS, RECORDS),
    times=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    cuts=st.data(),
)
def test_what_holds_does_not_depend_on_when_it_was_taken(
    lanes: Sequence[list[tuple[str, int, tuple[str, str]]]], times: list[int], cuts: st.DataObject
) -> None:
    """One piece or many, this partition first or that: the same statements hold, and of a partition the last."""
    pieces = []
    for part, said in enumerate(lanes):
        records = [
            WholeRecord(
                part, offset, SENT + timedelta(seconds=times[part * 4 + offset]), statement(name, n, *span)
            )
            for offset, (name, n, span) in enumerate(said)
        ]
        pieces.append(records)
    grid = Grid(timedelta(days=1), FIRST.start)
    whole = [
        row
        for part, records in enumerate(pieces)
        for row in taking.read_records(records, Lane("a", part), SENT, grid)
    ]
    split = []
    for part, records in enumerate(pieces):
        cut = cuts.draw(st.integers(0, len(records)))
        before = [*taking.read_records(records[:cut], Lane("a", part), SENT, grid)]
        latest = before[-1].at if before else SENT
        split = [*taking.read_records(records[cut:], Lane("a", part), latest, grid), *split, *before]
    assert list_current_statements(whole) == list_current_statements(split)
    for part, said in enumerate(lanes):
        if said and not lanes[1 - part]:
            name, n, span = said[-1]
            assert says(name, *span, n) in list_current_statements(whole)[name]
