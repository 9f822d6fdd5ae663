"""The shipped pipeline `visitors_by_country`, with answers computed by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.unit.examples import declared

VISITORS = declared("visitors_by_country")


def view(visitor, geo, at):
    return {"visitor": visitor, "geo": geo, "at": at}


def seen(story, country="DE", side="merged"):
    """Return [window start, visitors, views, rows of the batch part] of one country."""
    return [
        [f"{row['window_start']:%H:%M}", row["visitors"], row["views"], row["batch_part"]]
        for row in story.answer(side=side, country=country, grouping="(country)")
    ]


def total(story):
    return {
        f"{row['window_start']:%H:%M}": (row["visitors"], row["views"]) for row in story.answer(grouping="()")
    }


def test_windows_slide_over_midnight_and_over_the_seam(scenario):
    """One day is certified and the next is live; a window over both is one number of people."""
    #           23:53  :54  :55  :56  :57  :58  :59 | 00:00  :01
    # ada                              a         a  |
    # bob                                           | b
    # window 23:56                [-----------------|-----)
    story = scenario(VISITORS, now="2026-03-02T00:10Z")
    story.send(
        view("ada", "DE", "2026-03-01T23:57:30Z"),
        view("ada", "DE", "2026-03-01T23:59:59.999Z"),
        view("bob", "DE", "2026-03-02T00:00:00Z"),
        view("cem", "FR", "2026-03-02T00:01:00Z"),
    )
    story.epoch()
    expected = [
        ["23:53", 1, 1, 1],
        ["23:54", 1, 1, 1],
        ["23:55", 1, 2, 2],
        ["23:56", 2, 3, 2],
        ["23:57", 2, 3, 2],
        ["23:58", 2, 2, 1],
        ["23:59", 2, 2, 1],
        ["00:00", 1, 1, 0],
    ]
    assert seen(story) == [[*row[:3], 0] for row in expected]
    assert story.batch("2026-03-01") == ["2026-03-01T00:00:00Z"]
    assert seen(story) == expected


def test_a_late_view_is_in_five_windows_at_once(scenario):
    """It comes after its day has been certified."""
    story = scenario(VISITORS, now="2026-03-02T00:10Z")
    story.send(view("ada", "DE", "2026-03-01T23:57:30Z"), view("cem", "FR", "2026-03-02T00:01:00Z"))
    story.epoch()
    story.batch("2026-03-01")
    story.send(view("dan", "DE", "2026-03-01T23:55:10Z"), view("ada", "DE", "2026-03-01T23:55:20Z"))
    assert dict(story.epoch().late) == {"2026-03-01T00:00:00Z": 2}
    assert seen(story) == [
        ["23:51", 2, 2, 0],
        ["23:52", 2, 2, 0],
        ["23:53", 2, 3, 1],
        ["23:54", 2, 3, 1],
        ["23:55", 2, 3, 1],
        ["23:56", 1, 1, 1],
        ["23:57", 1, 1, 1],
    ]


def test_who_is_seen_in_two_countries_is_one_visitor_of_the_world(scenario):
    """Adding up countries would count people twice; a view of no country is one of '??'."""
    story = scenario(VISITORS, now="2026-03-01T12:10Z")
    story.send(
        view("ada", "DE", "2026-03-01T12:00:00Z"),
        view("ada", "FR", "2026-03-01T12:00:30Z"),
        view("bob", None, "2026-03-01T12:00:59.999Z"),
        {"visitor": "cem", "at": "2026-03-01T12:01:00Z"},
    )
    story.epoch()
    # 12:00 is the first start whose window has all four views, 11:57 the last before it that does: [11:57, 12:02).
    assert total(story)["12:00"] == (3, 4)
    assert total(story)["11:57"] == (3, 4)
    assert total(story)["11:56"] == (2, 3)
    assert total(story)["12:01"] == (1, 1)
    assert seen(story, "??")[-2:] == [["12:00", 2, 2, 0], ["12:01", 1, 1, 0]]


def test_twenty_four_hours_of_views_are_seen_by_no_window_twice(scenario):
    """Every view is in exactly five windows, whatever its time: size over slide."""
    story = scenario(VISITORS, now="2026-03-03")
    first = datetime(2026, 3, 1, 0, 4, 59)
    times = [first + timedelta(minutes=7 * number, seconds=number) for number in range(200)]
    story.send(*(view(f"v{number}", "DE", f"{at.isoformat()}Z") for number, at in enumerate(times)))
    story.epoch()
    assert sum(views for _, views in total(story).values()) == 5 * 200
