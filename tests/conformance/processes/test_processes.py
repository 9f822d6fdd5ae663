"""Any life of a source with process functions gives the same answers in plain Python and on Spark and Delta."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.conformance.joins.test_joins import compare
from tests.conformance.lives import START, end, happen, spoil
from tests.conformance.processes.saving import save_each_epoch
from tests.unit.process_functions import Abandoned, Fails, Remembers

from seamline import (
    Batch,
    CountWindow,
    KafkaSource,
    Pipeline,
    Sliding,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    sum,
)
from seamline.model.definition.processes import Process

SEEDS = [int(each) for each in os.environ.get("PROCESS_SEEDS", "3").split(",")]
SPANS = {"carts": "3 hours", "long": "1 day", "pasts": "2 hours"}
"""Spans of several intervals."""
HOUR = Tumbling("1 hour")
CARTS = Pipeline(
    name="carts",
    source=[
        KafkaSource(
            name="clicks",
            topic="clicks",
            schema="user STRING, total DECIMAL(10,2), name STRING, n INT, at TIMESTAMP",
            event_time="at",
            where="n IS NULL OR n >= 0",
            watermark=Watermark("20 minutes", idle_after="1 minute"),
        ),
    ],
    derive=[
        Process("carts", of="clicks", by=Abandoned, keys=["user"], begin="1 hour", where="total IS NOT NULL"),
        Process(
            "long",
            of="clicks",
            by=Abandoned,
            keys=["user"],
            begin="1 hour",
            forget="50 minutes",
            where="total > 0",
        ),
        Process("names", of="clicks", by=Fails, keys=["user"], columns=["name"], begin="30 minutes"),
        Process("pasts", of="clicks", by=Remembers, keys=["user", "name"], begin="1 hour"),
    ],
    views=[
        View(
            "left",
            of="carts",
            keys=["user", "kind"],
            window=HOUR,
            measures={"n": count(), "lost": sum("amount"), "mean": avg("amount")},
        ),
        View(
            "given_back",
            of="carts.refunds",
            keys=["user"],
            window=Sliding("2 hours", "1 hour"),
            measures={"n": count()},
        ),
        View(
            "for_long",
            of="long",
            keys=["kind"],
            window=Tumbling("30 minutes"),
            measures={"n": count(where="amount > 2")},
        ),
        View("thirds", of="names", keys=["name"], window=HOUR, measures={"n": sum("n"), "often": count()}),
        View("raised", of="names.errors", keys=["call", "error"], window=HOUR, measures={"n": count()}),
        View(
            "said",
            of="pasts",
            keys=["said"],
            window=HOUR,
            where="said <> 'row 1'",
            measures={"n": count(), "deep": sum("size(past)")},
        ),
        View("clicks", of="clicks", keys=["user"], window=HOUR, measures={"n": count()}),
        View(
            "counted",
            of="clicks",
            keys=["user"],
            window=CountWindow(3, slide=2),
            where="total > 0",
            measures={"n": count(), "named": count("name"), "total": sum("total")},
        ),
    ],
    batch=Batch("1 hour", "2026-01-05"),
)


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    clock = 0.0
    for _ in range(9):
        clock += dice.choice([10, 30, 60])
        records = []
        for _ in range(dice.randint(0, 7)):
            late = dice.choice([0, 0, 5, 20, 200])
            moment = START + timedelta(minutes=max(clock - late - dice.randint(0, 20), 0))
            records.append(
                {
                    "user": dice.choice(["ada", "bob", None]),
                    "total": dice.choice([None, "-1.5", "2", "3.25"]),
                    "name": dice.choice(["x", "bad", None]),
                    "n": dice.choice([None, -1, 1, 2]),
                    "at": moment.isoformat(),
                }
            )
        yield "send", ("clicks", spoil(dice, records))
        yield from happen(dice)
    yield from end(["clicks"])


LONG = replace(
    CARTS,
    derive=[replace(each, begin=SPANS.get(each.name, each.begin)) for each in CARTS.derive],
    views=[
        replace(each, window=replace(each.window, begin="3 hours")) if each.name == "counted" else each
        for each in CARTS.views
    ],
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("definition", [CARTS, LONG], ids=["intervals", "spans"])
@pytest.mark.faults
def test_two_engines_fold_alike(scenario, spark, definition, seed, monkeypatch):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    if definition is LONG:
        save_each_epoch(monkeypatch)
    compare(scenario, spark, definition, lambda: steps(seed))
