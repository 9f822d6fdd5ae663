"""Any life of a source of changes gives the same table in plain Python and on Spark and Delta."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.conformance.joins.test_joins import compare
from tests.conformance.lives import START, end, happen, spoil

from seamline import (
    Batch,
    Changelog,
    Global,
    KafkaSource,
    Pipeline,
    View,
    Watermark,
    avg,
    count,
    histogram,
    sum,
)

SEEDS = [int(each) for each in os.environ.get("CHANGE_SEEDS", "3").split(",")]
COUNTED = {
    "n": count(),
    "total": sum("balance"),
    "mean": avg("balance"),
    "large": count(where="balance > 10"),
    "sizes": histogram("version", [1, 2, 4]),
}
BANK = Pipeline(
    name="bank",
    source=[
        KafkaSource(
            name="accounts",
            topic="accounts",
            schema="id INT, branch STRING, country STRING, balance DECIMAL(12,2), version INT, op STRING, at TIMESTAMP",
            event_time="at",
            where="branch IS NULL OR branch <> 'hidden'",
            key=["id", "branch"],
            order="version",
            deleted="op = 'd'",
            watermark=Watermark("20 minutes", idle_after="1 minute"),
        ),
    ],
    derive=[Changelog("open", of="accounts")],
    views=[
        View("by_country", of="open", keys=["country"], window=Global(), measures=COUNTED),
        View("all_of_them", of="open", keys=[], window=Global(), measures={"n": count()}),
        View(
            "listed",
            of="open",
            keys=["id", "branch", "country", "balance"],
            where="country <> 'x'",
            window=Global(),
            measures={"n": count()},
        ),
    ],
    batch=Batch("1 hour", "2026-01-05"),
)
AS_READ = replace(BANK, source=[replace(BANK.sources[0], order="")])
DEFINITIONS = {"by version": BANK, "as read": AS_READ}


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    clock, versions = 0.0, {}
    for _ in range(8):
        clock += dice.choice([10, 30, 60])
        records = []
        for _ in range(dice.randint(0, 6)):
            late = dice.choice([0, 0, 5, 20, 200])
            moment = START + timedelta(minutes=max(clock - late - dice.randint(0, 20), 0))
            id = dice.choice([1, 2, None])
            versions[id] = versions.get(id, 0) + dice.choice([0, 1, 1])
            records.append(
                {
                    "id": id,
                    "branch": dice.choice(["a", "a", None, "hidden"]),
                    "country": dice.choice(["x", "y", None]),
                    "balance": dice.choice([None, 5, "12.50"]),
                    # Sometimes an older change comes again, or one that does not say how old it is.
                    "version": dice.choice([versions[id], versions[id], versions[id] - 1, None]),
                    "op": dice.choice(["u", "u", "d", None]),
                    "at": moment.isoformat(),
                }
            )
        yield "send", ("accounts", spoil(dice, records))
        yield from happen(dice)
    yield from end(["accounts"], id=9, version=1, country="y")


@pytest.mark.faults
@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_engines_know_one_table(scenario, spark, seed, name):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    compare(scenario, spark, DEFINITIONS[name], lambda: steps(seed))
