"""The shipped pipeline `web_sessions`, with answers computed by hand."""

from __future__ import annotations

import pytest
from tests.unit.examples import declared

SESSIONS = declared("web_sessions")


def line(at, path="/", status=200, host="192.0.2.1", agent="Mozilla/5.0", size=100, user="-"):
    day, _, hour = at.rpartition(" ")
    return (
        f'{host} - {user} [{day or "2026-03-01"}T{hour}Z] "GET {path} HTTP/1.1" {status} {size} "-" "{agent}"'
    )


def sessions(story, side="merged"):
    return [
        (
            f"{row['window_start']:%d %H:%M:%S}",
            f"{row['window_end']:%d %H:%M:%S}",
            row["hits"],
            row["errors"],
            row["batch_part"],
        )
        for row in story.answer("sessions", side=side)
    ]


def test_a_late_hit_joins_two_sessions(scenario):
    """09:20 and 10:00 are forty minutes apart: two visits, until the hit of 09:45 is there."""
    # hits      09:00  09:20        10:00
    # sessions  [------------)      [------)
    # late                    09:45
    # session   [--------------------------)
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    story.send(line("09:00:00"), line("09:20:00", "/pay", 502), line("10:00:00"))
    story.epoch()
    assert sessions(story) == [
        ("01 09:00:00", "01 09:50:00", 2, 1, 0),
        ("01 10:00:00", "01 10:30:00", 1, 0, 0),
    ]
    story.send(line("09:45:00"))
    story.epoch()
    assert sessions(story) == [("01 09:00:00", "01 10:30:00", 4, 1, 0)]


@pytest.mark.parametrize(("second", "found"), [("09:29:59", 1), ("09:30:00", 2)])
def test_thirty_minutes_end_a_session(scenario, second, found):
    """Hits less than the gap apart are one visit; a gap of thirty minutes is not less."""
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    story.send(line("09:00:00"), line(second), line("09:00:00", host="192.0.2.2"))
    story.epoch()
    assert len(story.answer("sessions", host="192.0.2.1")) == found
    assert len(story.answer("sessions", host="192.0.2.2")) == 1


def test_a_session_goes_on_over_midnight(scenario):
    """Its first day is certified, its second is live, and it is one visit of four hits."""
    story = scenario(SESSIONS, now="2026-03-02T02:00Z")
    story.send(line("23:40:00"), line("23:59:59"), line("2026-03-02 00:10:00"), line("2026-03-02 00:30:00"))
    story.epoch()
    one = ("01 23:40:00", "02 01:00:00", 4, 0)
    assert sessions(story) == [(*one, 0)]
    assert story.batch("2026-03-01") == ["2026-03-01T00:00:00Z"]
    assert sessions(story) == [(*one, 2)]


def test_pages_have_hits_hosts_and_a_rate_of_errors(scenario):
    """One of four hits of /pay fails with 5xx: 0.25. A 404 is the visitor's error, queries are no pages."""
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    story.send(
        line("09:00:00", "/pay"),
        line("09:10:00", "/pay?card=1", 502),
        line("09:20:00", "/pay", 404),
        line("09:59:59", "/pay", 200, "192.0.2.2"),
        line("10:00:00", "/pay", 500),
        line("09:00:00", "/"),
    )
    story.epoch()
    found = [
        (row["path"], f"{row['window_start']:%H}", row["hits"], row["hosts"], row["error_rate"])
        for row in story.answer("pages")
    ]
    assert found == [("/", "09", 1, 1, 0.0), ("/pay", "09", 4, 2, 0.25), ("/pay", "10", 1, 1, 1.0)]


def test_the_pages_of_the_day_come_by_their_hits(scenario):
    """/pay three times, / and /about twice: of equals the first by name."""
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    for path in ("/pay", "/", "/about", "/pay", "/help", "/"):
        story.send(line("09:00:00", path))
    story.epoch()
    story.send(line("10:00:00", "/pay"), line("10:00:00", "/about"))
    story.epoch()
    [day] = story.answer("top_pages")
    assert day["pages"] == [
        {"value": "/pay", "count": 3, "error": 0},
        {"value": "/", "count": 2, "error": 0},
        {"value": "/about", "count": 2, "error": 0},
    ]


def test_robots_visit_nothing(scenario):
    """They are accepted, kept aside, and in no view."""
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    story.send(line("09:00:00", agent="examplebot/2.1"), line("09:01:00", user="ada"))
    assert sum(story.epoch().accepted.values()) == 2
    assert sessions(story) == [("01 09:01:00", "01 09:31:00", 1, 0, 0)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line("09:00:00").replace("GET / HTTP/1.1", r"\x16\x03\x01"), "malformed text"),
        (line("09:00:00").replace("2026-03-01T09:00:00Z", "01/Mar/2026:09:00:00 +0000"), "mistyped field at"),
        (line("09:00:00", size="-"), "malformed text"),
        ("", "empty value"),
    ],
)
def test_what_is_no_such_line_is_refused(scenario, text, reason):
    """The time of another log format is not guessed."""
    story = scenario(SESSIONS, now="2026-03-01T11:00Z")
    story.send(text, line("09:00:00"))
    story.epoch()
    assert [each.reason for each in story.quarantine()] == [reason]
    assert len(story.answer("sessions")) == 1
