"""Any life of two sources gives the same matches and groups in plain Python and on Spark and Delta."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.joins.test_joins import compare
from tests.unit.group_functions import Both

from seamline import Batch, CoGroup, KafkaSource, Pattern, Pipeline, Tumbling, View, Watermark, count, sum

START = datetime(2026, 1, 5, tzinfo=UTC)
SEEDS = [int(each) for each in os.environ.get("FOLD_SEEDS", "4").split(",")]
HOUR = Tumbling("1 hour")
MARK = Watermark("20 minutes", idle_after="1 minute")
SHOP = Pipeline(
    name="shop",
    source=[
        KafkaSource(
            name="logins",
            topic="logins",
            schema="user STRING, success BOOLEAN, name STRING, total DECIMAL(10,2), n INT, at TIMESTAMP",
            event_time="at",
            where="n IS NULL OR n >= 0",
            watermark=MARK,
        ),
        KafkaSource(
            name="calls",
            topic="calls",
            schema="caller STRING, left_user INT, n INT, at TIMESTAMP",
            event_time="at",
            watermark=MARK,
        ),
    ],
    derive=[
        Pattern(
            "stolen",
            of="logins",
            keys=["user"],
            steps="fail{2,} ok?",
            within="30 minutes",
            define={"fail": "NOT success OR n = 2", "ok": "success"},
            select={
                "tries": "count(fail)",
                "since": "first(fail.at)",
                "paid": "sum(total)",
                "name": "ok.name",
            },
        ),
        Pattern(
            "risen",
            of="logins",
            keys=["user", "name"],
            steps="low any high",
            within="25 minutes",
            begin="30 minutes",
            where="total IS NOT NULL",
            define={"low": "total < 3", "high": "total >= 2"},
            select={"most": "max(total)"},
            skip="to next row",
        ),
        CoGroup(
            "both",
            left="logins",
            right="calls",
            on={"user": "caller"},
            window=Tumbling("30 minutes"),
            by=Both,
            left_columns=["name", "total"],
        ),
    ],
    views=[
        View(
            "stolen",
            of="stolen",
            keys=["user", "name"],
            window=HOUR,
            measures={"n": count(), "tries": sum("tries"), "paid": sum("paid")},
        ),
        View("risen", of="risen", keys=["user"], window=HOUR, measures={"n": count(), "most": sum("most")}),
        View(
            "met",
            of="both",
            keys=["user", "kind"],
            window=HOUR,
            measures={"n": count(), "lefts": sum("lefts"), "rights": sum("rights"), "worth": sum("worth")},
        ),
        View("alone", of="both.alone", keys=["user"], window=HOUR, measures={"n": sum("rights")}),
        View("raised", of="both.errors", keys=["call", "error"], window=HOUR, measures={"n": count()}),
    ],
    batch=Batch("1 hour", "2026-01-05"),
)


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    clock = 0.0
    for _ in range(8):
        clock += dice.choice([10, 30, 60])
        for topic, most in (("logins", 8), ("calls", 4)):
            records = []
            for _ in range(dice.randint(0, most)):
                late = dice.choice([0, 0, 5, 20, 200])
                moment = START + timedelta(minutes=max(clock - late - dice.randint(0, 20), 0))
                own = {
                    "user": dice.choice(["ada", "bob", None]),
                    "success": dice.choice([True, False, False, None]),
                }
                own |= {
                    "name": dice.choice(["x", "y", "bad"]),
                    "total": dice.choice([None, "-1.5", "2", "3.25"]),
                }
                if topic == "calls":
                    own = {"caller": own["user"], "left_user": 7}
                records.append({**own, "n": dice.choice([None, -1, 1, 2]), "at": moment.isoformat()})
            yield "send", (topic, [*records, *dice.choices([b"{bad"], k=dice.randint(0, 1))])
        yield dice.choice([("epoch", True), ("epoch", True), ("epoch", False), ("crash", "master")])
        if dice.random() < 0.3:
            yield "restart", None
        if dice.random() < 0.4:
            yield "dirty", None
    for topic in ("logins", "calls"):
        yield "send", (topic, [{"at": (START + timedelta(days=1)).isoformat()}])
    yield "epoch", True
    yield "dirty", None


LONG = replace(
    SHOP,
    derive=[
        replace(each, window=Tumbling("2 hours"))
        if isinstance(each, CoGroup)
        else replace(each, begin="3 hours")
        for each in SHOP.derive
    ],
)
CASES = [pytest.param(SHOP, each, id=f"intervals-{each}") for each in SEEDS]
CASES += [pytest.param(LONG, each + 1, id=f"spans-{each + 1}", marks=pytest.mark.faults) for each in SEEDS]


@pytest.mark.parametrize(("definition", "seed"), CASES)
def test_two_engines_match_and_group_alike(scenario, spark, definition, seed):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    compare(scenario, spark, definition, lambda: steps(seed))
