"""Ad events in the shape of the Yahoo streaming benchmark: 1,000 ads, ten to a campaign."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

from seamline.local.generators.record import SECOND, Generator, Load, Record, instant, text

ADS = 1000
PER_CAMPAIGN = 10
USERS = 2000
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
BAD_EVERY = 500


def ads() -> pa.Table:
    """List every ad with its campaign, for the pipeline to look up."""
    return pa.table({"ad_id": range(ADS), "campaign": [ad // PER_CAMPAIGN for ad in range(ADS)]})


def records(load: Load) -> Iterator[Record]:
    """Yield events of which a third are views; 5 % are out of order, 1 % late, every 500th is cut off."""
    dice = load.seeded_random("ad_campaigns")
    for number, at_ms in load.ticks():
        lag = lag_of(dice)
        event_ms = load.event_ms(at_ms, lag)
        user = f"user-{dice.randrange(USERS):04d}"
        value = text(
            {
                "user_id": user,
                "page_id": f"page-{dice.randrange(100):02d}",
                "ad_id": dice.randrange(ADS),
                "ad_type": dice.choice(AD_TYPES),
                "event_type": dice.choice(EVENT_TYPES),
                "event_time": instant(event_ms),
                "ip_address": f"198.51.100.{dice.randrange(256)}",
            }
        )
        if number % BAD_EVERY == BAD_EVERY - 1:
            yield Record(at_ms, user.encode(), value[:-20], "bad:malformed json")
        else:
            yield Record(at_ms, user.encode(), value, "late" if at_ms - event_ms > 10 * SECOND else "event")


def lag_of(dice: random.Random) -> int:
    """Draw how many milliseconds after it happened an event is sent."""
    chance = dice.random()
    if chance < 0.01:
        return dice.randrange(15 * SECOND, 120 * SECOND)
    return dice.randrange(SECOND, 9 * SECOND) if chance < 0.06 else 0


GENERATOR = Generator("examples.ad_events", records)
