"""Intervals, windows, offsets and watermarks: the arithmetic that every number stands on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import BadRange, DefinitionError, OffsetGap
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import Lane, OffsetRange, advance_vector, ranges_between
from seamline.model.protocol.watermark import Watermark, advance_watermark
from seamline.model.time.intervals import (
    MOST_DURATION,
    Grid,
    Interval,
    format_exact_duration,
    merge_intervals,
    parse_duration,
    parse_moment,
)

DAY = timedelta(days=1)
GRID = Grid(DAY, datetime(2013, 1, 1, tzinfo=UTC))


def day(number: int) -> datetime:
    return datetime(2013, 1, 1, tzinfo=UTC) + number * DAY


@given(numbers=st.sets(st.integers(0, 60)))
def test_spans_cover_exactly_their_intervals(numbers: set[int]) -> None:
    """A run's arguments name spans; the job must build the very same intervals."""
    intervals = [Interval(day(n), day(n + 1)) for n in sorted(numbers)]
    joined = merge_intervals(intervals)
    assert [each for span in joined for each in GRID.within(span)] == intervals
    assert all(left.end < right.start for left, right in zip(joined, joined[1:], strict=False))


@given(spans=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9))))
def test_spans_that_overlap_are_one(spans: list[tuple[int, int]]) -> None:
    """What is built with its neighbours reads each day once, however far two spans reach."""
    joined = merge_intervals(Interval(day(at), day(at + days)) for at, days in spans)
    covered = {day(at + n) for at, days in spans for n in range(days)}
    assert sorted(covered) == [each.start for span in joined for each in GRID.within(span)]
    assert all(left.end < right.start for left, right in zip(joined, joined[1:], strict=False))


def test_a_span_that_cuts_an_interval_is_refused() -> None:
    """Half a day cannot be certified."""
    with pytest.raises(BadRange, match="inside an interval"):
        list(GRID.within(Interval(day(0), day(1) + timedelta(hours=1))))


@given(span=st.timedeltas(timedelta(), MOST_DURATION).map(lambda span: span // 1000 * 1000))
def test_a_duration_is_written_as_it_is_read(span: timedelta) -> None:
    """A hint that says which one to write can be written so."""
    assert parse_duration(format_exact_duration(span), zero=True) == span


@pytest.mark.parametrize("text", ["3650001 days", "99999999999999 weeks", f"{'9' * 5000} days"])
def test_a_duration_beyond_the_calendar_is_refused(text: str) -> None:
    """Python's own errors, of numbers that are too large, name no field."""
    with pytest.raises(DefinitionError, match="is longer than 3650000 days"):
        parse_duration(text)


def test_a_moment_before_the_calendar_is_refused() -> None:
    """In UTC it is of the year before the first."""
    with pytest.raises(BadRange, match="not a date or a time"):
        parse_moment("0001-01-01T00:00+14:00")


def test_interval_text_round_trips() -> None:
    """The contract between Airflow's task and the Spark job is text."""
    interval = Interval(day(3), day(5))
    assert Interval.parse(str(interval)) == interval
    assert parse_moment("2013-01-04") == interval.start
    with pytest.raises(DefinitionError, match="not a duration"):
        parse_duration("3 fortnights")


LANE = Lane("topic", 0)


@given(ends=st.lists(st.integers(0, 50), max_size=20))
def test_ranges_join_up(ends: list[int]) -> None:
    """However an epoch is cut, the ranges cover the log once."""
    at: dict[Lane, int] = {LANE: 0}
    for end in sorted(ends):
        at = advance_vector(at, ranges_between(at, {LANE: end}))
    assert at[LANE] == max(ends, default=0)


@pytest.mark.parametrize("start", [4, 6])
def test_a_gap_or_an_overlap_stops_the_stream(start: int) -> None:
    """Skipping an offset loses an event, repeating one counts it twice."""
    with pytest.raises(OffsetGap, match="ends at 5"):
        advance_vector({LANE: 5}, [OffsetRange(LANE, start, 9)])


def test_watermark() -> None:
    """Lane 1 is silent: it holds the watermark back until it is idle; nothing makes it fall."""
    policy, lanes = Watermark("10 minutes"), [Lane("t", 0), Lane("t", 1)]
    bound = policy.bound
    first = {lanes[0]: day(2)}
    assert advance_watermark(None, lanes, first, [], policy) is None
    assert advance_watermark(None, lanes, first, [lanes[1]], policy) == day(2) - bound
    assert advance_watermark(day(2), lanes, {**first, lanes[1]: day(1)}, [], policy) == day(2)
    both = {lanes[0]: day(3), lanes[1]: day(1)}
    assert advance_watermark(None, lanes, both, [], policy) == day(1) - bound
    assert advance_watermark(None, lanes, both, lanes, policy) == day(3) - bound


def test_epoch_json_round_trips() -> None:
    """The master's commit metadata is where a lost ledger is rebuilt from."""
    epoch = Epoch(
        number=7,
        token=3,
        committed_at=day(1),
        record_version="abc",
        kind=EpochKind.READ,
        edge=True,
        ranges=(OffsetRange(LANE, 5, 9),),
        accepted={"2013-01-01T00:00:00Z": 3},
        refused={"malformed json": 1},
        max_event_time={LANE: day(1)},
        watermark=day(1),
        frontiers={"v/f": 7},
    )
    assert Epoch.from_json(epoch.to_json()) == epoch
