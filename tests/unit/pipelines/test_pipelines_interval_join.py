"""The shipped pipeline `interval_join`, with answers computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load
from seamline.model.time.intervals import format_utc_instant

JOINED = declared("interval_join")
GATEWAY, BILLING = "examples.gateway", "examples.billing"
HOUR = "2026-03-01T09:00:00Z"


def request(token, at, route="/buy"):
    return {"token": token, "route": route, "at": f"2026-03-01T{at}Z"}


def charge(token, at, cents):
    return {"token": token, "charged_cents": cents, "at": f"2026-03-01T{at}Z"}


def seen(story, side="merged"):
    names = ("charges", "cents", "requests", "uncharged")
    return {
        row["gateway_route"]: tuple(row[name] for name in names)
        for row in story.answer("by_route", side)
        if f"{row['window_start']:%H:%M}" == "09:00"
    }


def test_events_a_minute_apart_are_a_pair(scenario):
    """To the millisecond, before and after; a list of pairs has each of them."""
    story = scenario(JOINED, now="2026-03-01T09:10Z")
    story.send(request("a", "09:00:00"), request("b", "09:00:30"), topic=GATEWAY)
    story.send(charge("a", "08:59:00", 5), charge("b", "09:01:30.001", 9), topic=BILLING)
    story.epoch()
    story.send(request("c", "09:00:40", "/gift"), topic=GATEWAY)
    story.send(charge("a", "09:01:00", 7), topic=BILLING)
    story.epoch()
    assert seen(story) == {"/buy": (2, 12, 2, 1), "/gift": (0, None, 1, 1)}
    pairs = [(row["gateway_token"], row["billing_charged_cents"]) for row in story.answer("pairs")]
    assert sorted(pairs) == [("a", 5), ("a", 7)]
    assert sum(row["n"] for row in story.answer("events")) == 6


def test_a_silent_service_holds_nothing_back_and_what_it_sends_later_is_joined(scenario):
    """The hour is certified without its charge, and again with it."""
    story = scenario(JOINED, now="2026-03-01T10:05Z")
    story.send(request("a", "09:00:00"), request("z", "09:59:59"), topic=GATEWAY)
    story.send(charge("x", "08:00:00", 1), topic=BILLING)
    story.epoch()
    assert f"{story.watermark:%H:%M:%S}" == "07:59:50", "billing may still send of that time"
    story.wait("3 minutes")
    story.send(request("y", "10:01:11"), topic=GATEWAY)
    story.epoch()
    assert f"{story.watermark:%H:%M:%S}" == "10:01:01", "it is silent, and all of it is read"
    assert story.batch(HOUR) == [HOUR]
    assert seen(story, "batch") == {"/buy": (0, None, 1, 1)}
    story.send(charge("a", "09:00:59", 3), topic=BILLING)
    story.epoch()
    assert seen(story) == {"/buy": (1, 3, 1, 0)}
    assert HOUR in story.batch()
    assert seen(story, "batch") == {"/buy": (1, 3, 1, 0)}


def test_the_silence_that_the_generator_makes_is_long_enough_to_be_seen(scenario):
    """Billing that came back at the moment at which it would count as idle would show nothing."""
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    story = scenario(JOINED, now=format_utc_instant(start))
    load, marks = Load(seed=7, rate=5, count=5 * 299, start=start), {}
    for number, record in enumerate(GENERATORS["interval_join"].records(load), start=1):
        story.send(record.value, key=record.key, topic=record.topic)
        if number % (5 * 15) == 0:
            story.wait("15 seconds")
            marks[story.now] = story.watermark
    silent, back = start + timedelta(minutes=3), start + timedelta(minutes=5)
    seen = [mark for now, mark in marks.items() if silent + timedelta(minutes=1) < now < back]
    assert [mark > silent for mark in seen] == [True] * len(seen)
    assert len(seen) > 2
