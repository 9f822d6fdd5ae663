"""The shipped pipeline `priced_orders`, with answers computed by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load
from seamline.local.generators.priced_orders import SAMPLE, SKUS

PRICED = declared("priced_orders")
ORDERS, PRICES = "examples.counter_orders", "examples.counter_prices"
HOUR = "2026-03-01T09:00:00Z"


def order(sku, at, shop="Graz"):
    return {"sku": sku, "shop": shop, "ordered_at": f"2026-03-01T{at}Z"}


def price(sku, price, at):
    return {"sku": sku, "price": price, "valid_from": f"2026-03-01T{at}Z"}


def seen(story, side="merged"):
    names = ("orders", "worth", "mean_price", "without_a_price")
    return {
        row["orders_shop"]: tuple(row[name] for name in names)
        for row in story.answer("by_shop", side)
        if f"{row['window_start']:%d %H}" == "01 09"
    }


BEFORE = {"Graz": (3, Decimal("6.00"), 3.0, 1), "Lyon": (1, Decimal("3.00"), 3.0, 0)}
AFTER = {"Graz": (3, Decimal("7.50"), 3.75, 1), "Lyon": (1, Decimal("4.50"), 4.5, 0)}


def morning(scenario):
    """The orders of the page, with the price of 8 o'clock."""
    story = scenario(PRICED, now="2026-03-01T12:00Z")
    story.send(price("tea", "3.00", "08:00:00"), topic=PRICES)
    story.epoch()
    story.send(
        order("tea", "09:10:00"),
        order("tea", "09:40:00"),
        order("jam", "09:50:00"),
        order("tea", "09:30:00", "Lyon"),
        topic=ORDERS,
    )
    story.epoch()
    return story


def correct(story):
    """Send the late prices of the page."""
    story.send(price("tea", "4.50", "09:30:00"), price("jam", "2.00", "09:51:00"), topic=PRICES)
    story.epoch()


def close(story):
    """Let the hour end on both sides."""
    story.send(order("end", "10:01:00"), topic=ORDERS)
    story.send(price("end", "1.00", "10:01:00"), topic=PRICES)
    story.epoch()


def test_a_late_price_takes_the_place_of_the_older_one(scenario):
    """An order has one price at any time; the list of prices says which."""
    story = morning(scenario)
    assert seen(story) == BEFORE
    correct(story)
    assert seen(story) == AFTER
    found = {(row["orders_sku"], row["prices_price"]): row["orders"] for row in story.answer("by_price")}
    assert found == {("tea", Decimal("3.00")): 1, ("tea", Decimal("4.50")): 2, ("jam", None): 1}


def test_an_hour_is_built_again_for_a_late_price(scenario):
    """It closes with its own orders, since no later price counts in it."""
    story = morning(scenario)
    close(story)
    assert HOUR in story.batch()
    assert seen(story, "batch") == BEFORE
    correct(story)
    assert seen(story, "batch") == BEFORE
    assert seen(story) == AFTER
    assert story.batch() == [HOUR]
    assert seen(story, "batch") == AFTER


def test_a_price_is_valid_for_a_day(scenario):
    """To the second, and no longer."""
    story = scenario(PRICED, now="2026-03-01T12:00Z")
    old = {"sku": "tea", "price": "3.00", "valid_from": "2026-02-28T09:10:00Z"}
    story.send(old, topic=PRICES)
    story.send(order("tea", "09:10:00"), order("tea", "09:10:01", "Lyon"), topic=ORDERS)
    story.epoch()
    assert seen(story) == {"Graz": (1, Decimal("3.00"), 3.0, 0), "Lyon": (1, None, None, 1)}


def test_the_generator_makes_what_its_page_says():
    """A price of each article first; of the sample none."""
    load = Load(7, 1, 4 * 3600, datetime(2026, 3, 1, 9, tzinfo=UTC))
    made = [*GENERATORS["priced_orders"].records(load)]
    good = [(each, json.loads(each.value)) for each in made if not each.kind.startswith("bad")]
    assert [row["sku"] for each, row in good if each.topic == PRICES][: len(SKUS)] == [*SKUS]
    assert not [row for each, row in good if each.topic == PRICES and row["sku"] == SAMPLE]
    assert [row for each, row in good if each.topic == ORDERS and row["sku"] == SAMPLE]
    late = [each for each, _ in good if each.topic == PRICES and each.kind == "late"]
    assert 0.05 < len(late) / len([each for each in made if each.topic == PRICES]) < 0.15
    assert len(made) - len(good) == len(made) // 400
    assert made == [*GENERATORS["priced_orders"].records(load)]
