"""Answers of another system, however late, in whatever order: alike in plain Python, on Spark, and by hand."""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.joins.test_joins import compare, live

from seamline import (
    Ask,
    Batch,
    KafkaSource,
    Pipeline,
    Tumbling,
    View,
    Watermark,
    count,
    max,
    sum,
)
from seamline.model.errors import CertificateFailed
from seamline.testing.scenario import lane_of

START = datetime(2026, 1, 5, tzinfo=UTC)
NOW = f"{START + timedelta(days=2):%Y-%m-%d}"
ANSWERS = "shop.scored.answers"
SEEDS = [int(each) for each in os.environ.get("ASK_SEEDS", "5").split(",")]


async def ask(requests):
    """Be named by the definition; a scenario asks nobody."""
    return [{"risk": 0} for _ in requests]


SHOP = Pipeline(
    name="shop",
    source=[
        KafkaSource(
            name="paid",
            topic="paid",
            schema="id INT, user STRING, amount INT, at TIMESTAMP",
            event_time="at",
            where="user IS NULL OR user <> 'test'",
            watermark=Watermark("20 minutes", idle_after="1 minute"),
        )
    ],
    derive=[
        Ask(
            "scored",
            of="paid",
            by=ask,
            request={"user": "user"},
            columns=["risk INT"],
            when="amount > 10",
            version="2",
            side={"failed": "scored_error IS NOT NULL"},
        )
    ],
    views=[
        View(
            "by_user",
            of="scored",
            keys=["paid_user"],
            window=Tumbling("1 hour"),
            measures={
                "n": count(),
                "risk": sum("scored_risk"),
                "most": max("scored_risk"),
                "asked": count("left"),
                "open": count("unmatched"),
            },
        ),
        View("risks", of="scored", keys=["scored_risk"], window=Tumbling("2 hours"), measures={"n": count()}),
        View("paid", of="paid", keys=["user"], window=Tumbling("1 hour"), measures={"n": count()}),
        View(
            "tried",
            of="scored_answers",
            keys=["scored_error"],
            window=Tumbling("1 hour"),
            measures={"n": count()},
        ),
    ],
    batch=Batch("1 hour", "2026-01-05"),
)


class Life:
    """Payments, and records of answers for those that are asked about: an answer once, after any number of errors."""

    def __init__(self, seed):
        self.dice, self.paid, self.waiting, self.answered = random.Random(seed), [], [], {}

    def pay(self, count, clock):
        """Make payments; some are late."""
        made = []
        for _ in range(count):
            late = self.dice.choice([0, 0, 5, 90])
            row = {
                "id": len(self.paid),
                "user": self.dice.choice(["ada", "bob", None, "test"]),
                "amount": self.dice.choice([5, 20, 30, None]),
                "at": (START + timedelta(minutes=float(clock - late if clock > late else 0))).isoformat(),
            }
            if (row["amount"] or 0) > 10 and row["user"] != "test":
                self.waiting.append(row)
            self.paid.append(row)
            made.append(row)
        return made

    def answer(self, share):
        """Answer a share of the payments that wait, in any order; some get an error first, or an old answer."""
        self.dice.shuffle(self.waiting)
        made, left = [], []
        for row in self.waiting:
            if self.dice.random() > share:
                left.append(row)
                continue
            record = {
                "scored_topic_id": lane_of("paid", 0).topic_id,
                "scored_partition": 0,
                "scored_offset": row["id"],
                "scored_at": row["at"],
                "scored_version": "2",
                "scored_tries": 1,
            }
            kind = self.dice.choice(["answer", "answer", "error", "old"])
            if kind == "answer":
                self.answered[row["id"]] = self.dice.randrange(5)
                made.append({**record, "scored_risk": self.answered[row["id"]]})
                continue
            left.append(row)
            made.append(
                {**record, "scored_error": "timeout"}
                if kind == "error"
                else {**record, "scored_version": "1", "scored_risk": 99}
            )
        self.waiting = left
        return made

    def steps(self):
        """Make a life: the same steps for both engines."""
        clock = 0
        for _ in range(8):
            clock += self.dice.choice([10, 30, 60])
            yield "send", ("paid", self.pay(self.dice.randint(0, 6), clock))
            yield (
                "epoch",
                True,
            )
            yield "send", (ANSWERS, self.answer(0.5))
            yield self.dice.choice(
                [("epoch", True), ("epoch", False), ("crash", "master"), ("crash", "ledger")]
            )
            if self.dice.random() < 0.3:
                yield "restart", None
            if self.dice.random() < 0.4:
                yield "dirty", None
        while self.waiting:
            yield "send", (ANSWERS, self.answer(1.0))
            yield "epoch", True
        yield "send", ("paid", [{"at": (START + timedelta(days=1)).isoformat()}])
        yield "epoch", True
        yield "dirty", None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.faults
def test_two_engines_count_answered_rows_alike(scenario, spark, seed):
    compare(scenario, spark, SHOP, lambda: Life(seed).steps())


@pytest.mark.parametrize("seed", range(5))
def test_each_payment_counts_once_with_its_answer(scenario, seed):
    """By hand: whatever was said of it before, also by an older version of the question."""
    life, shop = Life(seed), scenario(SHOP, now=NOW)
    live(shop, life.steps())
    found: dict[str | None, list[int]] = {}
    for row in shop.answer("by_user"):
        known = found.setdefault(row["paid_user"], [0, 0, 0, 0])
        found[row["paid_user"]] = [
            one + (row[name] or 0) for one, name in zip(known, ("n", "risk", "asked", "open"), strict=True)
        ]
    expected: dict[str | None, list[int]] = {}
    for id, risk in life.answered.items():
        known = expected.setdefault(life.paid[id]["user"], [0, 0, 0, 0])
        expected[life.paid[id]["user"]] = [known[0] + 1, known[1] + risk, known[2] + 1, 0]
    assert found == expected
    risks = Counter(life.answered.values())
    assert sum_by(shop.answer("risks"), "scored_risk") == risks


def sum_by(rows, name):
    """Add up what was counted, by a column."""
    found = Counter()
    for row in rows:
        found[row[name]] += row["n"]
    return found


def test_an_interval_is_held_back_while_a_row_waits_for_its_answer(scenario):
    """Its watermark has passed: the answer would change what is certified. A record of why there is none is enough."""
    shop, hour = scenario(SHOP, now=NOW), f"{START:%Y-%m-%dT%H:%M:%SZ}"
    paid = [{"id": id, "user": "ada", "amount": amount, "at": hour} for id, amount in enumerate((50, 60, 5))]
    shop.send(*paid, {"at": (START + timedelta(days=1)).isoformat()}, topic="paid")
    shop.epoch()
    for offset, waiting in ((0, 2), (1, 1)):
        with pytest.raises(CertificateFailed, match=f"rows that wait for an answer: {waiting};"):
            shop.batch(hour)
        shop.reply("scored", offset, hour, error="" if offset else "timeout", risk=7)
        shop.epoch()
    assert shop.batch(hour) == [hour]
    [row] = shop.answer("by_user")
    assert [row[name] for name in ("n", "risk", "asked", "open", "batch_part")] == [1, 7, 2, 1, 4]
