"""The shipped pipeline `abandoned_carts`, with answers computed by hand."""

from __future__ import annotations

from decimal import Decimal

from tests.unit.examples import declared

CARTS = declared("abandoned_carts")
DAY = "2026-03-01T00:00:00Z"


def click(visitor, at, total, *, bought=False, day=1):
    return {
        "visitor": visitor,
        "shop": "tea",
        "total": total,
        "bought": bought,
        "at": f"2026-03-0{day}T{at}Z",
    }


def seen(story, side="merged"):
    return {
        (row["kind"], f"{row['window_start']:%H:%M}"): (row["carts"], row["worth"], row["clicks"])
        for row in story.answer("by_shop", side)
    }


def morning(scenario):
    """The clicks of the page, in two epochs."""
    story = scenario(CARTS, now="2026-03-03")
    story.send(click("ada", "09:00:00", "5"), click("ada", "09:10:00", "8"), click("bob", "09:20:00", "3"))
    story.epoch()
    story.send(click("bob", "09:45:00", "4", bought=True), click("eve", "10:00:00", "9"))
    story.epoch()
    return story


BOUGHT = {("bought", "09:00"): (1, Decimal(4), 2.0)}
LEFT = {("left", "09:00"): (1, Decimal(8), 2.0)}


def test_a_cart_is_left_once_the_watermark_is_half_an_hour_past_its_last_click(scenario):
    """Ada's at 09:40; nobody knows yet about Eve's."""
    assert seen(morning(scenario)) == BOUGHT | LEFT


def test_a_late_click_withdraws_what_was_emitted(scenario):
    """Ada has come back in time after all, and has bought something."""
    story = morning(scenario)
    story.send(click("ada", "09:35:00", "2", bought=True))
    story.epoch()
    assert seen(story) == {("bought", "09:00"): (2, Decimal(6), 2.5)}


def test_a_day_is_built_and_a_cart_of_before_midnight_is_no_ones(scenario):
    """The state begins anew at midnight: Zoe's timer would have been due on the next day."""
    story = morning(scenario)
    story.send(click("zoe", "23:40:00", "1"), click("ian", "00:10:00", "1", day=2))
    story.epoch()
    assert story.batch() == [DAY]
    whole = BOUGHT | LEFT | {("left", "10:00"): (1, Decimal(9), 1.0)}
    assert seen(story) == whole
    assert seen(story, "batch") == whole


def test_whoever_hesitates_is_counted_once(scenario):
    """By the tenth click, at its own time."""
    story = scenario(CARTS, now="2026-03-03")
    story.send(*(click("ada", f"09:{minute:02d}:00", "1") for minute in range(12)))
    story.epoch()
    assert [row["carts"] for row in story.answer("hesitant")] == [1]
