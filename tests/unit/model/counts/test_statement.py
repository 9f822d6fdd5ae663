"""What is a statement of a producer, and what is none: each reason by itself."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.counts.statement import (
    BadStatement,
    SentCount,
    TakenStatement,
    find_step,
    list_current_statements,
    list_unstated_spans,
    parse_statement,
)
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Grid, Interval

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAYS = Grid(timedelta(days=1), START)
GOOD = {"producer": "eu", "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "count": 3}


def refused(grid: Grid = DAYS, **change: object) -> str:
    """Return why a statement with some other fields is none; fields of None are left out."""
    fields = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(BadStatement) as found:
        parse_statement(json.dumps(fields).encode(), grid)
    return str(found.value)


def test_a_statement_is_about_one_interval_or_a_part_of_it() -> None:
    """In any zone that it names."""
    found = parse_statement(json.dumps(GOOD).encode(), DAYS)
    assert found == SentCount("eu", Interval(START, START + timedelta(days=1)), 3)
    there = json.dumps({**GOOD, "from": "2026-01-01T01:30:00+01:00", "count": 0}).encode()
    assert parse_statement(there, DAYS).window.start == START + HOUR / 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "x"}, "unknown field 'kind'"),
        ({"count": None}, "no field 'count'"),
        ({"count": -1}, "count is not a whole number of 0 or more"),
        ({"count": 1.5}, "count is not a whole number of 0 or more"),
        ({"count": True}, "count is not a whole number of 0 or more"),
        ({"count": 2**63}, "count is not a whole number of 0 or more"),
        ({"producer": ""}, "producer is not a name"),
        ({"producer": "a\nb"}, "producer is not a name"),
        ({"producer": 7}, "producer is not a name"),
        ({"from": "2026-01-01T00:00:00"}, "from is not an instant with a time zone"),
        ({"to": "tomorrow"}, "to is not an instant with a time zone"),
        ({"to": 1767225600}, "to is not an instant with a time zone"),
        ({"to": "0001-01-01T00:00:00+14:00"}, "to is not an instant with a time zone"),
        ({"to": "2026-01-01T00:00:00Z"}, "from is not before to"),
        ({"to": "2026-01-01T00:00:30Z"}, "from and to are not whole multiples of 60 s"),
        ({"to": "2026-01-02T01:00:00Z"}, "from and to are not in one interval of the pipeline"),
        ({"from": "2025-12-31T00:00:00Z"}, "from and to are not in one interval of the pipeline"),
    ],
)
def test_each_thing_that_is_wrong_has_its_reason(change: dict[str, object], reason: str) -> None:
    """Whoever sends statements must find out what is wrong with them."""
    assert refused(**change) == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty value"),
        (b"", "empty value"),
        (b"\xff", "not JSON"),
        (b"[" * 9_000, "not JSON"),
        (b"7", "not a JSON object"),
        (b" " * 20_000, "larger than 10000 bytes"),
    ],
)
def test_bytes_that_are_no_object_have_theirs(value: bytes | None, reason: str) -> None:
    """A topic takes anything."""
    with pytest.raises(BadStatement, match=reason):
        parse_statement(value, DAYS)


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.sampled_from([*GOOD, "x"]), each),
    ).map(lambda each: json.dumps(each).encode())
)
def test_whatever_is_sent_is_a_statement_or_has_a_reason(value: bytes) -> None:
    """One record must not stop those behind it."""
    with suppress(BadStatement):
        assert parse_statement(value, DAYS).count >= 0


def test_intervals_that_are_shorter_than_a_minute_have_statements_of_their_own() -> None:
    """Bounds divide a minute and the interval, so that any statement is about one."""
    assert "15 s" in refused(Grid(timedelta(seconds=15), START), to="2026-01-01T00:00:07Z")


HOURS = st.tuples(st.integers(0, 22), st.integers(1, 6), st.integers(0, 9)).map(
    lambda each: SentCount(
        "eu", Interval(START + each[0] * HOUR, START + min(each[0] + each[1], 24) * HOUR), each[2]
    )
)


@given(st.lists(HOURS, max_size=8), st.randoms())
def test_a_later_statement_replaces_all_that_it_overlaps(said: list[SentCount], order: object) -> None:
    """Hour by hour the last one that says something of it holds, or none; in whatever order they are looked at."""
    stated = [TakenStatement(Lane("a", 0), at, START, each) for at, each in enumerate(said)]
    shuffled = list(stated)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    held = list_current_statements(shuffled).get("eu", [])
    oracle: list[SentCount] = []
    for each in said:
        oracle = [one for one in oracle if not one.window.overlaps(each.window)] + [each]
    assert held == sorted(oracle, key=lambda each: each.window)
    for before, after in zip(held, held[1:], strict=False):
        assert before.window.end <= after.window.start


@given(st.lists(HOURS, max_size=8))
def test_what_is_stated_and_what_is_not_make_the_interval(said: list[SentCount]) -> None:
    """No hour is left out, and none is in both."""
    day = Interval(START, START + 24 * HOUR)
    held = list_current_statements(
        TakenStatement(Lane("a", 0), at, START, each) for at, each in enumerate(said)
    ).get("eu", [])
    parts = sorted([*(each.window for each in held), *list_unstated_spans(day, held)])
    assert parts[0].start == day.start and parts[-1].end == day.end
    assert all(one.end == other.start for one, other in zip(parts, parts[1:], strict=False))


def test_the_step_is_the_longest_that_fits() -> None:
    """Rows are counted by it: by the minute only where somebody tells of minutes."""
    day = timedelta(days=1)
    assert find_step(day, []) == day
    assert find_step(day, [Interval(START, START + 6 * HOUR)]) == 6 * HOUR
    assert (
        find_step(day, [Interval(START, START + HOUR / 4), Interval(START + HOUR, START + 2 * HOUR)])
        == HOUR / 4
    )
