"""The shipped pipeline `merged_sessions`, with answers computed by hand."""

from __future__ import annotations

from tests.unit.examples import declared

MERGED = declared("merged_sessions")
WEB, APP = "examples.web_pages", "examples.app_screens"
HOUR = "2026-03-01T09:00:00Z"


def page(visitor, at):
    return {"visitor": visitor, "page": "home", "at": f"2026-03-01T{at}Z"}


def screen(user, at):
    return {"user": user, "screen": "cart", "seen_at": f"2026-03-01T{at}Z"}


def seen(story, side="merged"):
    return {
        row["kind"]: (row["visits"], row["views"], row["mean_seconds"])
        for row in story.answer("by_kind", side)
    }


def morning(scenario):
    """The views of the page: of an hour, and one of the next on each side, which ends the hour."""
    story = scenario(MERGED, now="2026-03-02")
    story.send(page("ada", "09:00:00"), page("ada", "09:05:00"), page("bob", "09:50:00"), topic=WEB)
    story.send(screen("ada", "09:04:00"), screen("eve", "09:30:00"), screen("ada", "09:20:00"), topic=APP)
    story.epoch()
    story.send(page("bob", "10:02:00"), topic=WEB)
    story.send(screen("bob", "10:02:00"), topic=APP)
    story.epoch()
    return story


FOUND = {"both": (1, 3, 300.0), "app": (2, 2, 0.0), "web": (1, 1, 0.0)}


def test_a_visit_is_made_of_both_sides(scenario):
    """Ada went to the app and back, and came again after a quarter of an hour; Bob's visit ends with the hour."""
    story = morning(scenario)
    assert seen(story) == FOUND
    assert [(row["visitor"], row["visits"], row["moves"]) for row in story.answer("moves")] == [("ada", 1, 2)]


def test_nothing_is_said_of_an_hour_that_is_not_over(scenario):
    """The rows of a window come in one call, at its end."""
    story = scenario(MERGED, now="2026-03-02")
    story.send(page("ada", "09:00:00"), page("ada", "09:59:00"), topic=WEB)
    story.send(screen("ada", "09:59:00"), topic=APP)
    story.epoch()
    assert seen(story) == {}


def test_a_late_view_makes_one_visit_of_two(scenario):
    """Both that were emitted are withdrawn; a build says the same."""
    story = morning(scenario)
    assert story.batch() == [HOUR]
    story.send(page("ada", "09:12:00"), topic=WEB)
    story.epoch()
    later = {"both": (1, 5, 1200.0), "app": (1, 1, 0.0), "web": (1, 1, 0.0)}
    assert seen(story) == later
    assert story.batch() == [HOUR]
    assert seen(story, "batch") == later
