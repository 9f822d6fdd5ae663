"""Clicks on carts of some shops: most carts are left, some are bought; some clicks come late."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

CLICKS = "examples.cart_clicks"
SHOPS = ("books", "shoes", "tea")
VISITORS = 300
BAD_EVERY = 500


def records(load: Load) -> Iterator[Record]:
    """Yield clicks of 300 visitors; 2 % come late, by up to forty minutes, and every 500th is cut off."""
    dice = load.seeded_random("abandoned_carts")
    for number, at_ms in load.ticks():
        lag = dice.randrange(2 * MINUTE, 40 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        visitor = f"v{int(VISITORS * dice.random() ** 2):03d}"
        value = text(
            {
                "visitor": visitor,
                "shop": dice.choice(SHOPS),
                "total": f"{dice.randrange(100, 20_000) / 100:.2f}",
                "bought": dice.random() < 0.1,
                "at": instant(event_ms),
            }
        )
        if number % BAD_EVERY == BAD_EVERY - 2:
            yield Record(at_ms, visitor.encode(), value[:-20], "bad:malformed json")
        else:
            yield Record(at_ms, visitor.encode(), value, "late" if at_ms - event_ms > MINUTE else "event")


GENERATOR = Generator(CLICKS, records)
