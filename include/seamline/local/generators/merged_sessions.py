"""What visitors see on the web and in the app, in visits of some minutes; two in five go from one to the other."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

PAGES, SCREENS = "examples.web_pages", "examples.app_screens"
VISITORS, AT_ONCE = 400, 40
"""Of so many visitors so many are there at a time."""
NAMES = ("home", "search", "cart", "help")
LEAVES, MOVES = 0.05, 0.1
BAD_EVERY = 500


def records(load: Load) -> Iterator[Record]:
    """Yield pages and screens; 2 % come late, by up to ten minutes, and every 500th is cut off."""
    dice = load.seeded_random("merged_sessions")
    here = [(dice.randrange(VISITORS), dice.random() < 0.5) for _ in range(AT_ONCE)]
    for number, at_ms in load.ticks():
        place = dice.randrange(AT_ONCE)
        visitor, in_app = here[place]
        if dice.random() < MOVES:
            in_app = not in_app
        here[place] = (visitor, in_app)
        if dice.random() < LEAVES:
            here[place] = (dice.randrange(VISITORS), dice.random() < 0.5)
        lag = dice.randrange(MINUTE, 10 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        name, seen = f"v{visitor:03d}", dice.choice(NAMES)
        if in_app:
            value = text({"user": name, "screen": seen, "seen_at": instant(event_ms)})
        else:
            value = text({"visitor": name, "page": seen, "at": instant(event_ms)})
        kind = "late" if at_ms - event_ms > SECOND else "event"
        if number % BAD_EVERY == BAD_EVERY - 2:
            value, kind = value[:-20], "bad:malformed json"
        yield Record(at_ms, name.encode(), value, kind, topic=SCREENS if in_app else PAGES)


GENERATOR = Generator(PAGES, records, more=(SCREENS,))
