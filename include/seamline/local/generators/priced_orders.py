"""Orders, and prices that change: one price in ten is reported late, one article has none."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

ORDERS, PRICES = "examples.counter_orders", "examples.counter_prices"
SHOPS = ("Bergen", "Graz", "Lyon")
SKUS = tuple(f"sku-{number:02}" for number in range(20))
SAMPLE = "sample"
"""An article that has no price."""
PRICE_EVERY, BAD_EVERY = 10, 400


def records(load: Load) -> Iterator[Record]:
    """Yield a price of each article, then nine orders and a price in turns; every 400th is cut off."""
    dice = load.seeded_random("priced_orders")
    for number, at_ms in load.ticks():
        first = number < len(SKUS)
        priced = first or number % PRICE_EVERY == 0
        often = 0.1 if priced else 0.02
        late = not first and dice.random() < often
        lag = dice.randrange(15 * SECOND, 50 * MINUTE) if late else dice.randrange(SECOND)
        event_ms = at_ms if first else load.event_ms(at_ms, lag)
        if priced:
            sku = SKUS[number] if first else dice.choice(SKUS)
            price = f"{dice.randrange(100, 5_000) / 100:.2f}"
            topic, value = PRICES, text({"sku": sku, "price": price, "valid_from": instant(event_ms)})
        else:
            sku = dice.choice((*SKUS, SAMPLE))
            order = {"sku": sku, "shop": dice.choice(SHOPS), "ordered_at": instant(event_ms)}
            topic, value = ORDERS, text(order)
        if number % BAD_EVERY == BAD_EVERY - 1:
            yield Record(at_ms, sku.encode(), value[:-15], "bad:malformed json", topic=topic)
        else:
            kind = "late" if at_ms - event_ms > 10 * SECOND else "event"
            yield Record(at_ms, sku.encode(), value, kind, topic=topic)


GENERATOR = Generator(ORDERS, records, more=(PRICES,))
