"""Two ranges beside each other: windows are paired by the clock, and one without a partner is never a zero."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import BadRange
from seamline.model.time.intervals import Interval
from seamline.web.drawn.two_ranges import SHIFTS, Shift, pair_windows, read_shift, shift_range
from seamline.web.drawn.wall_clock import Reading

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BERLIN, NOWHERE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
SPRING, AUTUMN = datetime(2025, 3, 30, tzinfo=UTC), datetime(2025, 10, 26, tzinfo=UTC)
"""Days on which clocks of Berlin are put on, and back, at 01:00 UTC."""


def hours(start: datetime, count: int) -> list[datetime]:
    """List hours."""
    return [start + number * HOUR for number in range(count)]


def midnight(year: int, month: int, day: int) -> datetime:
    """Return when a day begins in Berlin."""
    return datetime(year, month, day, tzinfo=BERLIN).astimezone(UTC)


@given(
    start=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)).map(
        lambda each: each.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    ),
    count=st.integers(1, 60),
    against=st.sampled_from([*SHIFTS]),
    gone=st.sets(st.integers(0, 60)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_no_window_is_lost_or_told_twice(
    start: datetime, count: int, against: str, gone: set[int], zone: str
) -> None:
    """Each window of both ranges is in one pair, and two that are paired are shown at the same time by the clock."""
    place = ZoneInfo(zone)
    span = Interval(start, start + count * HOUR)
    shift = read_shift(against, span, place)
    other = shift_range(span, shift, place)
    others = [
        each
        for number, each in enumerate(hours(other.start, (other.end - other.start) // HOUR))
        if number not in gone
    ]
    pairs = pair_windows(hours(start, count), others, shift, place)
    assert [pair.this for pair in pairs if pair.this] == hours(start, count)
    assert sorted(pair.other for pair in pairs if pair.other) == others
    for pair in pairs:
        if pair.this and pair.other:
            this, that = Reading.at(pair.this, place), Reading.at(pair.other, place)
            assert shift.back(this.wall) == that.wall and this.again == that.again


@given(days=st.integers(1, 400), count=st.integers(1, 50))
def test_without_changes_of_the_clock_a_shift_is_a_span(days: int, count: int) -> None:
    """In UTC nothing is skipped: each window has the one that is so many days before."""
    start = datetime(2025, 3, 30, tzinfo=UTC)
    shift = Shift(days * DAY)
    pairs = pair_windows(hours(start, count), hours(start - days * DAY, count), shift, NOWHERE)
    assert [(each.this, each.other) for each in pairs] == [
        (each, each - days * DAY) for each in hours(start, count)
    ]


def test_an_hour_that_clocks_skip_has_no_partner() -> None:
    """In spring the day has 23 hours: the two o'clock of the day before is told to be missing, and why."""
    # this   00 01    03 04 ...
    # other  00 01 02 03 04 ...
    this = Interval(midnight(2025, 3, 30), midnight(2025, 3, 31))
    shift = read_shift("day", this, BERLIN)
    other = shift_range(this, shift, BERLIN)
    assert other == Interval(midnight(2025, 3, 29), midnight(2025, 3, 30))
    pairs = pair_windows(hours(this.start, 23), hours(other.start, 24), shift, BERLIN)
    [alone] = [each for each in pairs if not (each.this and each.other)]
    assert alone.other == datetime(2025, 3, 29, 1, tzinfo=UTC) and not alone.shown
    assert pairs.index(alone) == 2


def test_an_hour_that_clocks_show_twice_has_one_partner() -> None:
    """In autumn the second two o'clock has none: it is not compared with the first one's."""
    this = Interval(midnight(2025, 10, 26), midnight(2025, 10, 27))
    shift = read_shift("week", this, BERLIN)
    other = shift_range(this, shift, BERLIN)
    pairs = pair_windows(hours(this.start, 25), hours(other.start, 24), shift, BERLIN)
    [alone] = [each for each in pairs if not (each.this and each.other)]
    assert alone.this == AUTUMN + HOUR and not alone.shown


def test_windows_of_minutes_are_in_order_where_an_hour_is_shown_twice() -> None:
    """A line over them would go back and forth."""
    begin = AUTUMN - HOUR
    this = [begin + number * HOUR / 4 for number in range(12)]
    shift = Shift(7 * DAY)
    pairs = pair_windows(this, [each - 7 * DAY for each in this], shift, BERLIN)
    assert [each.this for each in pairs if each.this] == this
    places = [each.place for each in pairs if each.place]
    assert places == sorted(places)


def test_a_window_without_a_row_is_told_apart_from_one_that_cannot_be() -> None:
    """The clock has shown that time in both: there was nothing to count."""
    start = datetime(2025, 6, 2, tzinfo=UTC)
    [first, second] = pair_windows(hours(start, 2), hours(start - DAY, 1), Shift(DAY), NOWHERE)
    assert first.other and second.other is None and second.shown


def test_a_year_before_is_the_same_date() -> None:
    """The 29th of February has none, and a range from it begins with March."""
    span = Interval(datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
    shift = read_shift("year", span, NOWHERE)
    assert shift_range(span, shift, NOWHERE) == Interval(
        datetime(2023, 3, 1, tzinfo=UTC), datetime(2023, 3, 2, tzinfo=UTC)
    )
    [leap, first] = pair_windows(
        [span.start, span.start + DAY], [datetime(2023, 3, 1, tzinfo=UTC)], shift, NOWHERE
    )
    assert leap.other is None and not leap.shown
    assert first.other == datetime(2023, 3, 1, tzinfo=UTC)


def test_the_range_before_ends_where_this_one_begins() -> None:
    """By the clock: the month of the change is as many days as the one before has."""
    span = Interval(midnight(2025, 3, 24), midnight(2025, 3, 31))
    found = shift_range(span, read_shift("", span, BERLIN), BERLIN)
    assert found == Interval(midnight(2025, 3, 17), midnight(2025, 3, 24))


@pytest.mark.parametrize("against", [*SHIFTS])
def test_a_range_that_ends_before_it_starts_by_the_clock_is_compared(against: str) -> None:
    """From the first half past two to the second quarter past: the other one is as long."""
    span = Interval(AUTUMN + HOUR / 2, AUTUMN + 5 * HOUR / 4)
    found = shift_range(span, read_shift(against, span, BERLIN), BERLIN)
    assert found.end - found.start == span.end - span.start


def test_another_start_is_read_or_refused() -> None:
    """An instant, also a later one; anything else is no range."""
    span = Interval(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 3, tzinfo=UTC))
    found = shift_range(span, read_shift("2025-02-01", span, NOWHERE), NOWHERE)
    assert found == Interval(datetime(2025, 2, 1, tzinfo=UTC), datetime(2025, 2, 3, tzinfo=UTC))
    with pytest.raises(BadRange, match="other start"):
        read_shift("whenever", span, NOWHERE)
    with pytest.raises(BadRange, match="no such range"):
        shift_range(span, Shift(timedelta(days=999_999)), NOWHERE)


def test_the_ends_of_the_calendar_are_refused() -> None:
    """A range that some clocks have no date for is no error of ours."""
    span = Interval(datetime(2025, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC))
    with pytest.raises(BadRange, match="no date"):
        read_shift("day", span, ZoneInfo("Pacific/Kiritimati"))
    last = Interval(datetime(9999, 12, 30, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC))
    with pytest.raises(BadRange, match="no such range"):
        shift_range(last, Shift(timedelta(days=-2)), NOWHERE)
