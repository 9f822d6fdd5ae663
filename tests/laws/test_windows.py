"""Windows: which there are, what they hold, and how they pass the days on which clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.definition.windows import Cumulating, Session, Sliding, Tumbling, Window
from seamline.model.errors import DefinitionError
from seamline.model.protocol.seam import windows_over
from seamline.model.time.intervals import EPOCH, Grid
from seamline.model.time.window_arithmetic import Gaps, Ruling
from seamline.model.time.zone_clock import MICROSECOND, clock_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
GRID = Grid(DAY, datetime(2000, 1, 1, tzinfo=UTC))
ZONES = st.sampled_from(
    ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe"]
)
MOMENTS = st.datetimes(datetime(2000, 1, 3), datetime(2060, 1, 1), timezones=st.just(UTC))
CHANGES = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from(
        [
            datetime(2024, 3, 10, 7, tzinfo=UTC),
            datetime(2024, 11, 3, 6, tzinfo=UTC),
            datetime(2024, 4, 6, 15, tzinfo=UTC),
        ]
    ),
    st.integers(-600, 600),
)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def at(micros: int) -> datetime:
    return EPOCH + micros * MICROSECOND


def rulings() -> st.SearchStrategy[Ruling]:
    """Every kind of ruled windows, in every zone."""
    made = [
        lambda zone: Tumbling("1 hour", zone=zone),
        lambda zone: Tumbling("7 hours", zone=zone),
        lambda zone: Tumbling("1 day", offset="6 hours", zone=zone),
        lambda zone: Tumbling("1 week", zone=zone),
        lambda zone: Sliding("1 day", "1 hour", offset="15 minutes", zone=zone),
        lambda zone: Sliding("4 days", "1 day", zone=zone),
        lambda zone: Cumulating("1 day", "2 hours", zone=zone),
    ]
    return st.builds(lambda make, zone: make(zone).lay_out(GRID), st.sampled_from(made), ZONES)


@given(zone=ZONES, moment=MOMENTS | CHANGES, reading=MOMENTS | CHANGES)
def test_a_reading_is_reached_when_the_clock_has_shown_it(
    zone: str, moment: datetime, reading: datetime
) -> None:
    """All of window arithmetic rests on this one line, on every day of the year."""
    clock = clock_of(zone, GRID.start)
    assert (clock.first_reaching(us(reading)) <= us(moment)) == (
        us(reading) <= clock.furthest_reading(us(moment))
    )


@given(zone=ZONES, moment=MOMENTS | CHANGES)
def test_a_clock_reads_what_the_zone_shows(zone: str, moment: datetime) -> None:
    """A clock put back goes on with the furthest it had come to; else it shows what everybody's does."""
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)
    reading = at(clock_of(zone, GRID.start).furthest_reading(us(moment)))
    put_back = moment - 3 * HOUR
    assert reading == local or (
        reading > local
        and put_back.astimezone(ZoneInfo(zone)).utcoffset() != moment.astimezone(ZoneInfo(zone)).utcoffset()
    )


@given(ruling=rulings(), moment=MOMENTS | CHANGES)
def test_an_instant_is_in_its_windows_and_in_no_other(ruling: Ruling, moment: datetime) -> None:
    """Before and behind the windows that hold an instant there is none that does."""
    held = list(ruling.windows_at(us(moment)))
    assert held == sorted(set(held))
    assert all(start <= us(moment) < end for start, end in held)
    near = range(ruling.first_ending_after(us(moment)) - 3, ruling.last_starting_by(us(moment)) + 4)
    every = [(ruling.at(number), end) for number in near for end in ruling.ends(number)]
    assert held == [each for each in every if each[0] <= us(moment) < each[1]]


@given(ruling=rulings(), moment=MOMENTS | CHANGES)
def test_a_pane_crosses_no_border(ruling: Ruling, moment: datetime) -> None:
    """A pane in two windows would be counted in one of them; one in two intervals under two cuts."""
    pane = ruling.pane(DAY // MICROSECOND)
    start = us(moment) // pane * pane
    assert list(ruling.windows_at(start)) == list(ruling.windows_at(start + pane - 1))
    assert (DAY // MICROSECOND) % pane == 0


@given(ruling=rulings(), start=MOMENTS | CHANGES, length=st.integers(1, 10**12))
def test_the_panes_of_windows_hold_all_of_them(ruling: Ruling, start: datetime, length: int) -> None:
    """What is not read cannot be counted."""
    low, high = ruling.panes(us(start), us(start) + length)
    for instant in (us(start), us(start) + length - 1):
        for first, end in ruling.windows_at(instant):
            if us(start) <= first < us(start) + length:
                assert low <= first and end <= high
    first, last = ruling.starts(us(start), us(start) + length)
    held = [*ruling.windows_at(us(start)), *ruling.windows_at(us(start) + length - 1)]
    assert first == min(each[0] for each in held)
    assert last == max(each[0] for each in held)


def test_a_day_in_new_york_has_23_24_or_25_hours() -> None:
    """By hand: clocks were put on at 2024-03-10T07:00Z and back at 2024-11-03T06:00Z."""
    ruling = Tumbling("1 day", zone="America/New_York").lay_out(GRID)
    assert ruling.pane(DAY // MICROSECOND) == HOUR // MICROSECOND
    found = {}
    for day in ("2024-03-09", "2024-03-10", "2024-11-03"):
        noon = datetime.fromisoformat(f"{day}T17:00Z")
        ((start, end),) = ruling.windows_at(us(noon))
        found[day] = (at(start).strftime("%dT%H"), (end - start) * MICROSECOND / HOUR)
    assert found == {"2024-03-09": ("09T05", 24), "2024-03-10": ("10T05", 23), "2024-11-03": ("03T04", 25)}


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("Asia/Kolkata", 30), ("Asia/Kathmandu", 15), ("Australia/Lord_Howe", 30), ("Europe/Berlin", 60)],
)
def test_panes_are_as_short_as_the_zone_needs(zone: str, minutes: int) -> None:
    """A pane of an hour would put half an hour of Kolkata's midnight into the wrong day."""
    ruling = Tumbling("1 day", zone=zone).lay_out(GRID)
    assert ruling.pane(DAY // MICROSECOND) * MICROSECOND == timedelta(minutes=minutes)


def test_hours_are_hours_on_every_day() -> None:
    """A window that divides the change is neither stretched nor doubled: 01:00 comes twice, each an hour long."""
    ruling = Tumbling("1 hour", zone="America/New_York").lay_out(GRID)
    first, second = (datetime(2024, 11, 3, hour, 30, tzinfo=UTC) for hour in (5, 6))
    assert [list(ruling.windows_at(us(each))) for each in (first, second)] == [
        [(us(each.replace(minute=0)), us(each.replace(minute=0) + HOUR))] for each in (first, second)
    ]


def test_a_cumulating_day_grows_hour_by_hour() -> None:
    """By hand, on the day that lacks its third hour: 23 windows, the last of them the whole day."""
    ruling = Cumulating("1 day", "1 hour", zone="America/New_York").lay_out(GRID)
    start = us(datetime(2024, 3, 10, 5, tzinfo=UTC))
    found = list(ruling.windows_at(start))
    assert [(first, (end - first) * MICROSECOND // HOUR) for first, end in found] == [
        (start, hours) for hours in range(1, 24)
    ]


@given(minutes=st.lists(st.integers(0, 5000), max_size=40))
def test_sessions_are_what_gaps_leave(minutes: list[int]) -> None:
    """Each event is in one session, neighbours in one are near, sessions are apart."""
    gaps = Session("30 minutes").lay_out(GRID)
    assert isinstance(gaps, Gaps)
    instants = [minute * 60_000_000 for minute in minutes]
    found = windows_over(gaps, instants)
    assert sorted(place for places in found.values() for place in places) == list(range(len(minutes)))
    for (start, end), places in found.items():
        own = sorted(instants[place] for place in places)
        assert (own[0], own[-1] + gaps.gap) == (start, end)
        assert all(after - before < gaps.gap for before, after in zip(own, own[1:], strict=False))
    bounds = sorted(found)
    assert all(later[0] >= earlier[1] for earlier, later in zip(bounds, bounds[1:], strict=False))


WRONG: list[tuple[Window, str]] = [
    (Sliding("1 hour", "2 hours"), "longer than the window"),
    (Sliding("1 hour", "25 minutes"), "does not divide"),
    (Cumulating("1 day", "7 hours"), "does not divide"),
    (Cumulating("1 hour", "1 day"), "longer than the window"),
    (Tumbling("1 day", offset="1 day"), "not shorter"),
    (Tumbling("1 day", offset="noon"), "not a duration"),
    (Tumbling("1 day", zone="Mars/Olympus"), "not a time zone"),
    (Tumbling("1 day", zone="America"), "not a time zone"),
    (Tumbling("40 minutes", zone="America/New_York"), "do not fit the clock"),
    (Tumbling("1 week", offset="1 millisecond"), "panes"),
    (Session("a while"), "not a duration"),
]


@pytest.mark.parametrize(("window", "fact"), WRONG, ids=str)
def test_what_is_no_way_to_cut_time_is_refused(window: Window, fact: str) -> None:
    """An engine that guesses gives a number that nobody asked for."""
    with pytest.raises(DefinitionError, match=fact) as refused:
        window.lay_out(GRID)
    assert refused.value.hint
