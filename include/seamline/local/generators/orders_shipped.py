"""Orders and their shipments: nine of ten orders are shipped, some in two parcels, some reports come late."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

ORDERS, SHIPMENTS = "examples.shop_orders", "examples.shipments"
SHOPS = ("Bergen", "Graz", "Lyon")
CARRIERS = ("rail", "road")
WAITING = 500
"""Orders that wait at any time: shipping begins when there are so many, and takes any of them."""
SHIPMENT_EVERY, BAD_EVERY = 2, 400


def records(load: Load) -> Iterator[Record]:
    """Yield orders, then an order and a shipment in turns; 2 % are late by minutes, every 400th is cut off."""
    dice = load.seeded_random("orders_shipped")
    waiting: list[tuple[str, int]] = []
    for number, at_ms in load.ticks():
        lag = dice.randrange(15 * SECOND, 9 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        if number % SHIPMENT_EVERY and len(waiting) >= WAITING:
            place = dice.randrange(len(waiting))
            (order, ordered_ms), topic = waiting[place], SHIPMENTS
            if dice.random() >= 0.1:
                waiting[place] = waiting[-1]
                waiting.pop()
            event_ms = max(event_ms, ordered_ms + SECOND)
            value = text(
                {"order_id": order, "carrier": dice.choice(CARRIERS), "shipped_at": instant(event_ms)}
            )
        else:
            topic, order = ORDERS, f"{load.seed}-{number:010d}"
            if dice.random() < 0.9:
                waiting.append((order, event_ms))
            value = text(
                {
                    "order_id": order,
                    "shop": dice.choice(SHOPS),
                    "amount": f"{dice.randrange(100, 20_000) / 100:.2f}",
                    "ordered_at": instant(event_ms),
                }
            )
        if number % BAD_EVERY == BAD_EVERY - 1:
            yield Record(at_ms, order.encode(), value[:-15], "bad:malformed json", topic=topic)
        else:
            late = "late" if at_ms - event_ms > 10 * SECOND else "event"
            yield Record(at_ms, order.encode(), value, late, topic=topic)


GENERATOR = Generator(ORDERS, records, more=(SHIPMENTS,))
