"""Any life of joined sources gives the same answers in plain Python and on Spark and Delta."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.conformance.lives import START, end, happen, spoil, with_ids
from tests.conformance.test_engines_agree import in_order, near

from seamline import (
    Batch,
    Join,
    KafkaSource,
    Open,
    Pipeline,
    Session,
    Sliding,
    Tumbling,
    View,
    Watermark,
    avg,
    collect_distinct,
    count,
    distinct,
    formula,
    ratio,
    sum,
    top,
)
from seamline.model.errors import CertificateFailed, PublishRefused
from seamline.plan.batch import join_slices

HOURS = 6
HELD_BACK = "held back"
COUNTED = {
    "pairs": count(),
    "worth": sum("clicked_worth"),
    "mean": avg("shown_cost"),
    "who": distinct("clicked_who"),
    "often": top("clicked_worth", 2),
}
ADS = Pipeline(
    name="ads",
    source=[
        KafkaSource(
            name="shown",
            topic="shown",
            schema="ad STRING, slot INT, site STRING, cost INT, at TIMESTAMP",
            event_time="at",
            where="cost IS NULL OR cost >= 0",
            watermark=Watermark("20 minutes", idle_after="1 minute"),
        ),
        KafkaSource(
            name="clicked",
            topic="clicked",
            schema="ad STRING, slot INT, who STRING, worth INT, at TIMESTAMP",
            event_time="at",
            watermark=Watermark("30 minutes", idle_after="1 minute"),
        ),
    ],
    derive=[
        Join("paid", left="shown", right="clicked", on={"ad": "ad"}, before="5 minutes", after="90 minutes"),
        Join(
            "again",
            left="shown",
            right="shown",
            on={"site": "site", "slot": "slot"},
            before=Open("0 seconds"),
            after="1 hour",
            where="left_cost <> right_cost OR right_cost IS NULL",
            null_safe=["slot"],
        ),
        Join(
            "near",
            left="shown",
            right="clicked",
            on={"ad": "ad"},
            same=Tumbling("30 minutes", offset="10 minutes"),
        ),
    ],
    views=[
        View("beside", of="near", keys=["shown_site"], window=Tumbling("1 hour"), measures={"n": count()}),
        View("by_site", of="paid", keys=["shown_site"], window=Tumbling("1 hour"), measures=COUNTED),
        View(
            "rates",
            of="paid",
            keys=["shown_site"],
            window=Sliding("2 hours", "1 hour"),
            where="shown_ad <> 'z'",
            measures={
                "shown": count("left"),
                "hit": count("matched", where="shown_cost > 0"),
                "missed": count("unmatched"),
                "worth": sum("clicked_worth"),
                "rate": ratio("hit", "shown"),
                "each": formula("try_divide(w, n)", w=sum("clicked_worth * 1D"), n=count("left")),
            },
        ),
        View(
            "people",
            of="paid",
            keys=["clicked_who"],
            window=Session("40 minutes"),
            measures={"n": count(), "sites": collect_distinct("shown_site", limit=2)},
        ),
        View("twice", of="again", keys=["left_site"], window=Tumbling("30 minutes"), measures={"n": count()}),
        View("shown", of="shown", keys=["site"], window=Tumbling("1 hour"), measures={"n": count()}),
    ],
    batch=Batch("1 hour", "2026-01-05"),
)


COPIED = with_ids(ADS)
FORGETFUL = replace(COPIED, source=[replace(each, dedup_within="10 minutes") for each in COPIED.sources])
LENIENT = replace(FORGETFUL, derive=[replace(each, copies=True) for each in FORGETFUL.derive])


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    clock = 0.0
    for _ in range(9):
        clock += dice.choice([10, 30, 60])
        for topic in ("shown", "clicked"):
            records = []
            for _ in range(dice.randint(0, 5)):
                late = dice.choice([0, 0, 5, 20, 200])
                moment = START + timedelta(minutes=max(clock - late - dice.randint(0, 20), 0))
                record = {
                    "ad": dice.choice(["a", "b", "z", None]),
                    "slot": dice.choice([1, None]),
                    "at": moment.isoformat(),
                }
                own = (
                    {"site": dice.choice(["x", "y"]), "cost": dice.choice([None, -1, 1, 2])}
                    if topic == "shown"
                    else {"who": dice.choice(["ada", "bob", None]), "worth": dice.choice([None, 3, 4])}
                )
                records.append({**record, **own})
            yield "send", (topic, spoil(dice, records))
        yield from happen(dice)
    yield from end(["shown", "clicked"])


def copied(seed, *, often):
    """Give each record of a life an id, and send some again, most of them soon."""
    dice, sent = random.Random(seed), {"shown": [], "clicked": []}
    for step, of in steps(seed):
        if step != "send":
            yield step, of
            continue
        topic, values = of
        mine, again = sent[topic], []
        known = len(mine)
        for value in (each for each in values if isinstance(each, dict)):
            mine.append({"id": len(mine), **value})
            while dice.random() < often:
                again.append(dice.choice(mine[-3:] if dice.random() < 0.7 else mine))
        yield "send", (topic, [*mine[known:], *again, *(each for each in values if isinstance(each, bytes))])


def built(life):
    """Build what is dirty; give the intervals, or whether some are held back, and what is published then."""
    try:
        return sorted(life.batch()), life.engine.cuts()
    except (CertificateFailed, PublishRefused):
        return HELD_BACK, life.engine.cuts()


def live(life, steps):
    """Take every step, and give what can be seen at the end, and after each batch."""
    seen = []
    for step, of in steps:
        match step:
            case "send":
                topic, values = of
                life.send(*values, topic=topic)
            case "epoch":
                life.epoch(edge=of)
            case "crash":
                life.crash(of)
            case "restart":
                life.restart()
            case "dirty":
                seen.append(built(life))
    answers = {
        (each.name, side): life.answer(each.name, side)
        for each in life.pipeline.views
        for side in ("merged", "batch", "speed")
    }
    return answers, seen, life.quarantine(), life.watermark, life.engine.cuts()


SEEDS = [int(each) for each in os.environ.get("JOIN_SEEDS", "3").split(",")]


NOW = f"{START + timedelta(days=2):%Y-%m-%d}"


@pytest.mark.parametrize("seed", SEEDS)
def test_two_engines_join_alike(scenario, spark, seed, monkeypatch):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    monkeypatch.setattr(join_slices, "ROWS", 2)
    compare(scenario, spark, ADS, lambda: steps(seed))


@pytest.mark.faults
@pytest.mark.parametrize(
    "definition", [pytest.param(FORGETFUL, id="held back"), pytest.param(LENIENT, id="certified")]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_engines_join_copies_alike(scenario, spark, seed, definition):
    """What is forgotten is joined in both layers, and its intervals are certified if the definition says so."""
    seen = compare(scenario, spark, definition, lambda: copied(seed, often=0.3))
    assert any(done == HELD_BACK for done, _ in seen) == (definition is FORGETFUL)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_within_the_horizon_change_nothing(scenario, seed):
    """Every answer and every build is that of the same life in which each record was sent once."""
    one, other = (live(scenario(COPIED, now=NOW), copied(seed, often=often)) for often in (0, 0.4))
    assert one[0] == other[0]
    assert one[1] == other[1]


def compare(scenario, spark, definition, steps):
    """Live the same life on both engines; give what builds said."""
    plain, plain_seen, *plain_rest = live(scenario(definition, now=NOW), steps())
    real, real_seen, *real_rest = live(scenario(definition, now=NOW, spark=spark), steps())
    assert real_rest == plain_rest
    assert real_seen == plain_seen
    for name in plain:
        assert len(real[name]) == len(plain[name]), name
        for found, expected in zip(in_order(real[name]), in_order(plain[name]), strict=True):
            assert near(found, expected), name
    assert all(plain[each.name, "merged"] for each in definition.views)
    # Of a view of a source builds remove the copies that the stream has forgotten.
    alike = [view for view in definition.views if view.name != "shown" or not definition.sources[0].event_id]
    for view in alike:
        merged, speed = (in_order(plain[view.name, side]) for side in ("merged", "speed"))
        parts = ("batch_part", "speed_part")
        assert [drop(row, parts) for row in merged] == [drop(row, parts) for row in speed], view.name
    return plain_seen


def drop(row, names):
    """Leave columns out of a row."""
    return {name: value for name, value in row.items() if name not in names}
