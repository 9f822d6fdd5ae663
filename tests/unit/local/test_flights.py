"""The demo's input: all real flights, and mischief of which the truth is known."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from seamline.local.flights import TOTAL, Span, last_departure, list_departures, read_flights
from seamline.local.mischief import HUGE_RECORDS, SORTS, Sending, plan_sendings
from seamline.model.errors import BadRange
from seamline.model.time.intervals import parse_moment

pytestmark = pytest.mark.slow

SEASON = Span(parse_moment("2013-10-01"))
WEEK = Span(parse_moment("2013-03-01"), parse_moment("2013-03-08"))
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def planned(span: Span, **options: object) -> list[Sending]:
    return list(plan_sendings(read_flights(span), list_departures(span), 4, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def season() -> list[Sending]:
    """The last three months: the year takes four times as long and shows no more."""
    return planned(SEASON)


def lateness(item: Sending) -> int:
    assert item.event_time is not None
    return item.at_ms - int(datetime.fromisoformat(item.event_time).timestamp() * 1000)


def test_flights_are_read_as_they_are() -> None:
    """Everything the demo proves rests on these rows being the package's."""
    first = next(read_flights())
    assert first == {
        "carrier": "UA",
        "flight": 1545,
        "origin": "EWR",
        "dest": "IAH",
        "tailnum": "N14228",
        "dep_delay": 2.0,
        "air_time": 227.0,
        "distance": 1400.0,
        "sched_dep": "2013-01-01T10:15:00Z",
    }
    assert len(list_departures()) == TOTAL
    assert last_departure() == datetime(2014, 1, 1, 4, 59, tzinfo=UTC)
    assert last_departure("2013-01-02").date() == datetime(2013, 1, 1, tzinfo=UTC).date()


def test_span_is_half_open() -> None:
    """Days replayed one after another must neither repeat nor lose a flight."""
    day = [row["sched_dep"][:10] for row in read_flights(Span(WEEK.start, parse_moment("2013-03-02")))]
    assert set(day) == {"2013-03-01"}
    with pytest.raises(BadRange):
        Span(WEEK.end, WEEK.start)


def test_every_flight_is_sent_once_and_counted(season: list[Sending]) -> None:
    """Mischief may delay, repeat and add; it may never take a flight away."""
    total = len(list_departures(SEASON))
    kinds = Counter(item.kind.partition(":")[0] for item in season)
    assert kinds["out_of_order"] == round(total * 0.02)
    assert kinds["late"] == round(total * 0.005)
    assert kinds["duplicate"] == round(total * 0.002)
    assert kinds["bad"] == round(total * 0.001)
    once = [item.event_id for item in season if item.kind in ("flight", "out_of_order", "late")]
    assert len(once) == len(set(once)) == total


def test_delays_are_what_their_kind_says(season: list[Sending]) -> None:
    """The watermark's bound decides what is late; a record in the wrong group would make the truth false."""
    assert all(lateness(item) == 0 for item in season if item.kind == "flight")
    assert all(MINUTE <= lateness(item) < 10 * MINUTE for item in season if item.kind == "out_of_order")
    late = [lateness(item) for item in season if item.kind == "late"]
    assert HOUR <= min(late) < DAY < max(late) <= 4 * DAY


def test_clock_never_goes_back_nor_past_the_last_flight(season: list[Sending]) -> None:
    """The clock is Kafka's timestamp, against which the future is judged."""
    clock = [item.at_ms for item in season]
    assert clock == sorted(clock)
    assert clock[-1] == list_departures()[-1]


def test_duplicates_follow_their_first(season: list[Sending]) -> None:
    """Only the same bytes on the same partition, later, are what a retrying producer would send."""
    seen: dict[str | None, Sending] = {}
    for item in season:
        if item.kind == "duplicate":
            first = seen[item.event_id]
            assert (item.value, item.key, item.partition) == (first.value, first.key, first.partition)
        else:
            seen[item.event_id] = item


def test_last_day_is_calm(season: list[Sending]) -> None:
    """The day that stays open is answered by the speed layer alone, duplicates not removed."""
    last = [item for item in season if item.event_time and item.event_time >= "2014-01-01"]
    assert len(last) == 88
    assert {item.kind for item in last} == {"flight"}


def test_bad_records_have_the_fault_they_name(season: list[Sending]) -> None:
    """The journal's reasons are the truth that quarantine is compared with."""
    bad = [item for item in season if item.kind.startswith("bad:")]
    by_reason = {item.kind.removeprefix("bad:"): item for item in bad}
    assert set(by_reason) == {
        "empty value",
        "tombstone",
        "not utf-8",
        "malformed json",
        "missing field carrier",
        "missing field flight",
        "mistyped field dep_delay",
        "mistyped field flight",
        "null event time",
        "event time before start",
        "event time in the future",
        "rule known origin",
    }
    assert by_reason["empty value"].value == b""
    assert by_reason["tombstone"].value is None
    for item in bad:
        reason, value = item.kind.removeprefix("bad:"), item.value or b""
        if reason == "malformed json":
            with pytest.raises(json.JSONDecodeError):
                json.loads(value)
        elif reason == "not utf-8":
            with pytest.raises(UnicodeDecodeError):
                value.decode()
        elif reason.startswith("missing field"):
            assert reason.split()[-1] not in json.loads(value)
        elif reason == "event time in the future":
            moment = datetime.fromisoformat(json.loads(value)["sched_dep"])
            assert moment > datetime.fromtimestamp(item.at_ms / 1000, UTC) + timedelta(days=1)
    assert sum(len(item.value or b"") > 900_000 for item in bad) == HUGE_RECORDS


def test_small_replay_has_every_sort_of_bad_record() -> None:
    """A test on a week sees every way of being refused."""
    bad = [item for item in planned(WEEK) if item.kind.startswith("bad:")]
    assert len(bad) == len(SORTS) + HUGE_RECORDS


def test_plan_is_its_seed() -> None:
    """A failure seen once must be seen again."""
    assert planned(WEEK) == planned(WEEK)
    assert planned(WEEK) != planned(WEEK, seed=7)


def test_without_mischief_only_flights_are_sent() -> None:
    """Benchmarks want the plain stream."""
    assert {item.kind for item in planned(WEEK, mischief=False)} == {"flight"}
