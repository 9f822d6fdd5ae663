"""The shipped pipeline `scored_payments`, with answers computed by hand."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load
from seamline.local.scoring.manners import risk_of

PAYMENTS = declared("scored_payments")
AT = "2026-03-01T09:30:00Z"


def pay(story, user, country, amount):
    story.send(
        {"user": user, "country": country, "amount": amount, "paid_at": AT}, topic="examples.scored_payments"
    )


def by_risk(story):
    names = ("scored", "risky", "highest", "asked", "unanswered")
    return {row["payments_country"]: tuple(row[name] for name in names) for row in story.answer("by_risk")}


def test_a_payment_counts_once_its_answer_is_there(scenario):
    """The story of the page."""
    story = scenario(PAYMENTS, now="2026-03-02T00:00Z")
    pay(story, "ada", "DE", "250.00")
    pay(story, "bob", "DE", "80.00")
    pay(story, "cem", "NO", "120.00")
    story.epoch()
    totals = {row["country"]: (row["payments"], row["amount"]) for row in story.answer("by_country")}
    assert totals == {"DE": (2, Decimal("330.00")), "NO": (1, Decimal("120.00"))}
    assert by_risk(story) == {"DE": (0, 0, None, 1, 1), "NO": (0, 0, None, 1, 1)}
    story.reply("scored", 0, AT, risk=0.91)
    story.reply("scored", 2, AT, error="timeout")
    story.epoch()
    assert by_risk(story) == {"DE": (1, 1, 0.91, 1, 0), "NO": (0, 0, None, 1, 1)}
    story.reply("scored", 2, AT, risk=0.2)
    story.epoch()
    assert by_risk(story) == {"DE": (1, 1, 0.91, 1, 0), "NO": (1, 0, 0.2, 1, 0)}
    [row] = story.answer("asks")
    assert (row["answers"], row["tries"]) == (2, 1)


def test_the_payments_of_the_generator_are_answered_as_the_system_answers(scenario):
    """Those of more than a hundred, each once; the one of nothing is refused."""
    load = Load(seed=7, rate=5.0, count=600, start=datetime(2026, 3, 1, tzinfo=UTC))
    story = scenario(PAYMENTS, now="2026-03-02T00:00Z")
    risky: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for offset, record in enumerate(GENERATORS["scored_payments"].records(load)):
        story.send(record.value, key=record.key)
        row = json.loads(record.value)
        if Decimal(row["amount"]) > 100:
            risk = risk_of(row["user"], row["amount"], 7)
            story.reply("scored", offset, row["paid_at"], risk=risk)
            asked[row["country"]] += 1
            risky[row["country"]] += risk >= 0.8
    story.epoch()
    assert [each.reason for each in story.quarantine()] == ["rule positive amount"]
    found = {"scored": Counter(), "risky": Counter(), "unanswered": Counter()}
    for row in story.answer("by_risk"):
        for name, counted in found.items():
            counted[row["payments_country"]] += row[name]
    assert found == {"scored": asked, "risky": risky, "unanswered": Counter(dict.fromkeys(asked, 0))}
