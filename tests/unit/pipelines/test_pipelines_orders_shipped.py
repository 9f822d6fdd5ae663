"""The shipped pipeline `orders_shipped`, with answers computed by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load

SHIPPED = declared("orders_shipped")
ORDERS, SHIPMENTS = "examples.shop_orders", "examples.shipments"
DAY = "2026-03-01T00:00:00Z"


def order(id, at, shop="Graz"):
    return {"order_id": id, "shop": shop, "amount": "10.00", "ordered_at": f"2026-03-{at}Z"}


def shipment(id, at, carrier="rail"):
    return {"order_id": id, "carrier": carrier, "shipped_at": f"2026-03-{at}Z"}


def seen(story, side="merged"):
    names = ("orders", "shipped", "waiting", "parcels", "by_rail")
    return {
        row["orders_shop"]: tuple(row[name] for name in names)
        for row in story.answer("by_shop", side)
        if f"{row['window_start']:%d}" == "01"
    }


def fortnight(scenario):
    """The reports of the page, as they come."""
    story = scenario(SHIPPED, now="2026-03-20T00:00Z")
    story.send(order("a", "01T09:00"), order("b", "01T10:00"), order("c", "01T11:00", "Lyon"), topic=ORDERS)
    story.epoch()
    return story


def ship(story):
    """Send the shipments of the page."""
    story.send(shipment("a", "02T08:00"), shipment("a", "04T08:00", "road"), topic=SHIPMENTS)
    story.epoch()
    story.send(shipment("b", "15T10:01"), shipment("c", "15T11:00"), topic=SHIPMENTS)
    story.epoch()


def test_what_waits_is_what_has_no_shipment_yet(scenario):
    """The second parcel of an order ships no second order."""
    story = fortnight(scenario)
    assert seen(story) == {"Graz": (2, 0, 2, 0, 0), "Lyon": (1, 0, 1, 0, 0)}
    ship(story)
    assert seen(story) == {"Graz": (2, 1, 1, 2, 1), "Lyon": (1, 1, 0, 1, 1)}


def test_a_day_is_certified_when_its_fortnight_is_over_and_built_again_for_a_late_report(scenario):
    """A report that comes weeks late is joined with an order that nothing remembers but the master."""
    story = fortnight(scenario)
    ship(story)
    story.send(order("z", "16T00:59"), topic=ORDERS)
    story.send(shipment("z", "16T00:59"), topic=SHIPMENTS)
    story.epoch()
    assert story.batch() == []
    story.send(order("z", "16T01:01"), topic=ORDERS)
    story.send(shipment("z", "16T01:01"), topic=SHIPMENTS)
    story.epoch()
    assert story.batch() == [DAY]
    story.send(shipment("b", "03T12:00", "road"), topic=SHIPMENTS)
    story.epoch()
    late = {"Graz": (2, 2, 0, 3, 1), "Lyon": (1, 1, 0, 1, 1)}
    assert seen(story) == late
    assert seen(story, "batch") != late
    assert story.batch() == [DAY]
    assert seen(story, "batch") == late


def test_the_generator_ships_orders_that_were_placed_most_of_them_within_days():
    """A shipment before its order is in no pair: the example would show orders that wait, and did not."""
    load = Load(seed=7, rate=0.02, count=20_000, start=datetime(2026, 3, 1, tzinfo=UTC))
    orders, shipped = {}, {}
    for record in GENERATORS["orders_shipped"].records(load):
        if not record.kind.startswith("bad:"):
            row = json.loads(record.value)
            at = datetime.fromisoformat(row.get("ordered_at") or row["shipped_at"])
            (shipped if record.topic == SHIPMENTS else orders).setdefault(row["order_id"], at)
    waits = [at - orders[id] for id, at in shipped.items() if id in orders]
    assert min(waits) > timedelta(0)
    assert max(waits) > timedelta(days=2), "days, as in the story that the page tells"
    assert 0.8 < len(shipped) / len(orders) < 0.95
