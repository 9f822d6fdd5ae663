"""Page views of people in a few countries, of whom some come in again from another one."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

COUNTRIES = {"DE": 30, "US": 25, "FR": 15, "IN": 15, "BR": 10, "JP": 5}
PATHS = ("/", "/shop", "/shop/cart", "/blog", "/about")
VISITORS = 400
BAD_EVERY = 300


def records(load: Load) -> Iterator[Record]:
    """Yield views; 2 % are of no country, 1 % from abroad, 1 % late, and every 300th has no visitor."""
    dice = load.seeded_random("visitors_by_country")
    homes = dice.choices(list(COUNTRIES), list(COUNTRIES.values()), k=VISITORS)
    for number, at_ms in load.ticks():
        who = dice.randrange(VISITORS)
        late = dice.random() < 0.01
        event_ms = load.event_ms(
            at_ms, dice.randrange(2 * MINUTE, 10 * MINUTE) if late else dice.randrange(SECOND)
        )
        chance = dice.random()
        geo = None if chance < 0.02 else dice.choice(list(COUNTRIES)) if chance < 0.03 else homes[who]
        fields = {"visitor": f"v{who:03d}", "geo": geo, "path": dice.choice(PATHS), "at": instant(event_ms)}
        if number % BAD_EVERY == BAD_EVERY - 1:
            del fields["visitor"]
            yield Record(at_ms, b"unknown", text(fields), "bad:missing field visitor")
        else:
            kind = "late" if at_ms - event_ms > MINUTE else "event"
            yield Record(at_ms, f"v{who:03d}".encode(), text(fields), kind)


GENERATOR = Generator("examples.page_views", records)
