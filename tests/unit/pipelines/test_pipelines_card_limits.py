"""The shipped pipeline `card_limits`, with answers computed by hand."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load

CARDS = declared("card_limits")
PAYMENTS, LIMITS = "examples.card_payments", "examples.card_limits"


def pay(story, channel, amount, country="DE"):
    row = {"card": "c", "country": country, "channel": channel, "amount": amount}
    story.send({**row, "paid_at": "2026-03-01T09:30:00Z"}, topic=PAYMENTS)


def limit(story, key, above=None, when="true"):
    country, name = key.split()
    value = above and {"country": country, "name": name, "above": above, "when": when}
    story.send(value, key=key.encode(), topic=LIMITS)


def exceeded(story):
    return {row["limit"]: (row["payments"], row["amount"]) for row in story.answer("by_limit")}


def test_a_payment_meets_the_limits_that_were_read_with_it_or_before(scenario):
    """The story of the page: one is lowered, one is taken out, and what was counted stays."""
    story = scenario(CARDS, now="2026-03-02T00:00Z")
    limit(story, "DE large", "400.00")
    limit(story, "DE web", "100.00", "channel = 'web'")
    pay(story, "shop", "450.00")
    pay(story, "web", "450.00")
    pay(story, "web", "90.00")
    story.epoch()
    pay(story, "shop", "300.00")
    limit(story, "DE large", "200.00")
    limit(story, "DE web")
    story.epoch()
    pay(story, "web", "150.00")
    story.epoch()
    assert exceeded(story) == {"large": (3, Decimal("1200.00")), "web": (1, Decimal("450.00"))}
    [row] = story.answer("by_country")
    assert (row["payments"], row["within"], row["amount"]) == (5, 2, Decimal("1440.00"))


def test_the_generator_changes_limits_half_way(scenario):
    """Read in two halves, each payment exceeds what a loop says; the wrong limit leaves the one of before."""
    load = Load(seed=7, rate=5.0, count=2000, start=datetime(2026, 3, 1, tzinfo=UTC))
    records = list(GENERATORS["card_limits"].records(load))
    before = {f"{country} large": 400 for country in ("DE", "NO", "PT")}
    before |= {f"{country} web": 100 for country in ("DE", "NO", "PT")}
    after = {**before, "DE large": 200, "PT cash": 50}
    del after["NO web"]
    story = scenario(CARDS, now="2026-03-02T00:00Z")
    wanted: Counter[tuple[str, str]] = Counter()
    for half, limits in ((records[:1000], before), (records[1000:], after)):
        for record in half:
            story.send(record.value, key=record.key, topic=record.topic)
            if record.topic == PAYMENTS:
                row = json.loads(record.value)
                of, channel, amount = row["country"], row["channel"], Decimal(row["amount"])
                wanted.update(
                    (of, name)
                    for key, above in limits.items()
                    for country, name in [key.split()]
                    if country == of
                    and amount > above
                    and (name != "web" or channel == "web")
                    and (name != "cash" or (channel == "atm" and amount < 400))
                )
        story.epoch()
    found: Counter[tuple[str, str]] = Counter()
    for row in story.answer("by_limit"):
        found[row["country"], row["limit"]] += row["payments"]
    assert found == wanted
    assert sorted(each.reason for each in story.quarantine()) == ["error in lookup limits", "tombstone"]
