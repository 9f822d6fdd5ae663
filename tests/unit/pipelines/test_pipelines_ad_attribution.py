"""The shipped pipeline `ad_attribution`, with answers computed by hand."""

from __future__ import annotations

from tests.unit.examples import declared

ADS = declared("ad_attribution")
SHOWN, CLICKED = "examples.impressions", "examples.clicks"
HOUR = "2026-03-01T09:00:00Z"


def shown(impression, at, site="news"):
    return {
        "impression": impression,
        "site": site,
        "campaign": 1,
        "cost_micros": 10,
        "shown_at": f"2026-03-01T{at}Z",
    }


def clicked(impression, at):
    return {"impression": impression, "clicked_at": f"2026-03-01T{at}Z"}


def seen(story, side="merged"):
    names = ("clicks", "shown", "clicked", "never_clicked", "rate")
    return {
        (row["shown_site"], f"{row['window_start']:%H:%M}"): tuple(row[name] for name in names)
        for row in story.answer("by_site", side)
        if f"{row['window_start']:%H}" == "09"
    }


def day(scenario):
    """The events of the page, in three epochs."""
    story = scenario(ADS, now="2026-03-01T12:00Z")
    story.send(shown("a", "09:00:00"), shown("b", "09:00:30"), topic=SHOWN)
    story.send(clicked("a", "09:00:10"), clicked("d", "09:01:00"), topic=CLICKED)
    story.epoch()
    story.send(clicked("a", "10:00:00"), clicked("b", "10:00:31"), topic=CLICKED)
    story.epoch()
    story.send(shown("c", "09:59:50", "mail"), topic=SHOWN)
    story.send(clicked("c", "10:10:00"), topic=CLICKED)
    story.epoch()
    return story


BY_HAND = {("news", "09:00"): (2, 2, 1, 1, 0.5), ("mail", "09:59"): (1, 1, 1, 0, 1.0)}


def test_a_click_is_put_down_to_the_impression_it_follows_within_an_hour(scenario):
    """An hour later is within; a second more is not, and who is never clicked is counted as such."""
    assert seen(day(scenario)) == BY_HAND


def test_an_hour_closes_an_hour_later_and_is_built_again_for_what_comes_then(scenario):
    """The click was there before its impression was."""
    story = day(scenario)
    story.send(shown("z", "10:59:00"), topic=SHOWN)
    story.send(clicked("z", "10:59:00"), topic=CLICKED)
    story.epoch()
    assert story.batch() == [], "until eleven a click may come for an impression of 09:59"
    story.send(shown("z", "11:00:10"), topic=SHOWN)
    story.send(clicked("z", "11:00:10"), topic=CLICKED)
    story.epoch()
    assert story.batch() == [HOUR]
    assert seen(story, "batch") == BY_HAND

    story.send(shown("d", "09:00:59"), topic=SHOWN)
    story.epoch()
    late = {**BY_HAND, ("news", "09:00"): (3, 3, 2, 1, 2 / 3)}
    assert seen(story) == late
    assert seen(story, "batch") == BY_HAND
    assert story.batch() == [HOUR]
    assert seen(story, "batch") == late
