"""Impressions of ads and clicks on them: four impressions to a click, some late, in long runs some after an hour."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

SHOWN, CLICKED = "examples.impressions", "examples.clicks"
SITES = ("news", "mail", "games", "maps")
REMEMBERED = 20_000
"""Impressions of which the last are clicked."""
CLICK_EVERY, BAD_EVERY = 5, 500


def records(load: Load) -> Iterator[Record]:
    """Yield four impressions, then a click on an earlier one; 1 % are late by minutes, every 500th is cut off."""
    dice = load.seeded_random("ad_attribution")
    shown: deque[tuple[str, int]] = deque(maxlen=REMEMBERED)
    for number, at_ms in load.ticks():
        event_ms = load.event_ms(at_ms, draw_lag(dice))
        if number % CLICK_EVERY == CLICK_EVERY - 1 and shown:
            topic, impression, seen_ms = CLICKED, *dice.choice(shown)
            event_ms = max(event_ms, seen_ms + SECOND)
            value = text({"impression": impression, "clicked_at": instant(event_ms)})
        else:
            topic, impression = SHOWN, f"{load.seed}-{number:012d}"
            shown.append((impression, event_ms))
            value = text(
                {
                    "impression": impression,
                    "site": dice.choice(SITES),
                    "campaign": dice.randrange(20),
                    "cost_micros": dice.randrange(100, 5_000),
                    "shown_at": instant(event_ms),
                }
            )
        if number % BAD_EVERY == BAD_EVERY - 2:
            yield Record(at_ms, impression.encode(), value[:-20], "bad:malformed json", topic=topic)
        else:
            late = "late" if at_ms - event_ms > 10 * SECOND else "event"
            yield Record(at_ms, impression.encode(), value, late, topic=topic)


def draw_lag(dice: random.Random) -> int:
    """Draw how many milliseconds after it happened an event is sent."""
    return dice.randrange(15 * SECOND, 20 * MINUTE) if dice.random() < 0.01 else dice.randrange(SECOND)


GENERATOR = Generator(SHOWN, records, more=(CLICKED,))
