"""Any life of a pipeline gives the same answers in plain Python and on Spark and Delta, for every kind of view."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.own_measures import Span

from seamline import (
    Batch,
    CountWindow,
    Cumulating,
    Global,
    KafkaSource,
    Pipeline,
    Rule,
    Session,
    Sliding,
    Tumbling,
    View,
    Watermark,
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    own,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.lake.engine import states
from seamline.lake.log.master import Master
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.generations import Generations
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import Interval
from seamline.plan.batch import work_shares
from seamline.spark.build import fast_path, repeated_ids, spilled_states
from seamline.spark.build.build import build_intervals

START = datetime(2024, 3, 9, tzinfo=UTC)
"""The day before clocks are put on in New York."""
DAYS = 3
MEASURES = {
    "n": count(),
    "known": count("amount"),
    "total": sum("amount"),
    "mean": avg("price"),
    "least": min("price"),
    "most": max("amount"),
    "people": distinct("who"),
    "middle": quantile("price", 0.5),
}
EVERY_KIND = {
    **MEASURES,
    "paid": sum("price", where="amount > 0"),
    "free": count_true("amount = 0"),
    "share": ratio("free", "known"),
    "opened": first("kind"),
    "closed": last("price", where="amount IS NOT NULL"),
    "spread": variance("price"),
    "swing": stddev("amount", ddof=0),
    "ends": quantiles("price", [0, 1], where="kind = 'x'"),
    "often": top("amount", 2),
    "buckets": histogram("price", edges=[0.2, 1]),
    "kinds": collect_distinct("kind", limit=1),
    "reach": own("price", Span, where="amount IS NOT NULL"),
    "each": formula("try_divide(total, n)", total=sum("amount * 1D"), n=count("amount"), where="kind = 'x'"),
}
OF_PRICES = {
    "n": count(),
    "mean": avg("price"),
    "kinds": collect_distinct("kind", limit=1),
    "last": last("price", where="price IS NOT NULL"),
}
OF_ITEMS = {
    "n": count(),
    "opened": first("item"),
    "closed": last("item", where="item > 1"),
    "total": sum("item", where="kind = 'y'"),
    "often": top("item", 1),
}


def view(name, window, keys=("who",), measures=MEASURES, **more):
    return View(name, keys=list(keys), window=window, measures=measures, **more)


LIFE = Pipeline(
    name="life",
    source=KafkaSource(
        topic=["one", "two"],
        schema="id INT NOT NULL, who STRING, kind STRING, amount INT, price DOUBLE, at TIMESTAMP, "
        "items ARRAY<INT>",
        event_time="at",
        event_id=["id"],
        watermark=Watermark("1 hour", idle_after="1 minute"),
    ),
    views=[
        view("hours", Tumbling("1 hour")),
        view("local_days", Tumbling("1 day", zone="America/New_York")),
        view("long", Tumbling("2 days", offset="12 hours")),
        view("sliding", Sliding("6 hours", "2 hours"), where="amount > 0", measures=EVERY_KIND),
        view("so_far", Cumulating("1 day", "8 hours")),
        view("sessions", Session("3 hours"), measures=EVERY_KIND),
        view("ever", Global()),
        view("all", Tumbling("12 hours"), keys=()),
        view(
            "sets",
            Tumbling("1 day"),
            keys=("who", "kind"),
            grouping_sets=[["who", "kind"], ["kind"], []],
        ),
        view("items", Tumbling("1 day"), measures=OF_ITEMS, explode={"item": "items"}),
    ],
    batch=Batch("1 day", f"{START:%Y-%m-%d}"),
)
ORDERED = replace(
    LIFE,
    source=replace(LIFE.source, dedup_within="12 hours"),
    views=[
        view("threes", CountWindow(3), where="amount IS NOT NULL"),
        view("fours", CountWindow(4), keys=()),
        view("hours", Tumbling("1 hour")),
        view("items", Tumbling("6 hours"), keys=("item",), explode={"item": "items"}),
        view(
            "item_sessions", Session("3 hours"), keys=("item",), explode={"item": "items"}, where="item > 1"
        ),
    ],
)
"""What depends on the order of records: duplicates that the stream takes out, and count windows."""
SOURCES = replace(
    LIFE,
    source=[
        KafkaSource(
            name="orders",
            topic="one",
            schema="id INT NOT NULL, who STRING, kind STRING, amount INT, price DOUBLE, at TIMESTAMP, "
            "items ARRAY<INT>",
            event_time="at",
            event_id=["id"],
            rules=[Rule("small", "amount IS NULL OR amount < 7")],
            watermark=Watermark("1 hour", idle_after="1 minute"),
        ),
        KafkaSource(
            name="returns",
            topic="two",
            schema="id INT NOT NULL, who STRING NOT NULL, price DOUBLE, at TIMESTAMP, spare STRING",
            event_time="at",
            event_id=["who", "id"],
            select={"kind": "CASE WHEN price > 1 THEN 'x' ELSE 'z' END"},
            where="price IS NULL OR price < 3",
            side={"cheap": "price = 0.1"},
            watermark=Watermark("2 hours", idle_after="1 minute"),
        ),
    ],
    views=[
        view("hours", Tumbling("1 hour"), of="orders"),
        view("kinds", Tumbling("12 hours"), of="returns", keys=("kind",), measures={"n": count()}),
        view("both", Sliding("6 hours", "2 hours"), of=["orders", "returns"], measures=OF_PRICES),
        view("sessions", Session("3 hours"), of=["returns", "orders"], keys=("kind",), measures=OF_PRICES),
    ],
)
"""Two sources: columns of one name are of both, an id is a source's own, and each has its own steps."""
ORDERED_SOURCES = replace(
    SOURCES,
    source=[replace(each, dedup_within="12 hours") for each in SOURCES.source],
    views=[
        *SOURCES.views,
        view("threes", CountWindow(3), of=["orders", "returns"], measures=OF_PRICES),
        view("items", Tumbling("6 hours"), of="orders", keys=("item",), explode={"item": "items"}),
    ],
)


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    ids = 0
    for _ in range(6):
        for topic, partition in (("one", 0), ("one", 1), ("two", 0)):
            records = []
            for _ in range(dice.randint(0, 5)):
                ids += dice.random() < 0.8
                moment = START + timedelta(minutes=ids * 1297 % (DAYS * 24 * 60))
                records.append(
                    {
                        "id": ids,
                        "who": ["ada", "bob", None][ids % 3],
                        "kind": ["x", "y"][ids % 2],
                        "amount": dice.choice([None, 0, 1, 7]),
                        "price": dice.choice([None, 0.1, 0.2, 3.5]),
                        "at": moment.isoformat(),
                        "items": dice.choice([None, [], [3, 1, 2], [None, 2]]),
                    }
                )
            yield (
                "send",
                (topic, partition, [*records, *dice.choices([b"{bad", None, b""], k=dice.randint(0, 1))]),
            )
        yield dice.choice([("epoch", True), ("epoch", False), ("crash", "slices"), ("crash", "master")])
        if dice.random() < 0.4:
            yield "batch", START + timedelta(days=dice.randrange(DAYS))
    yield "send", ("one", 0, [{"id": -1, "at": (START + timedelta(days=DAYS + 1)).isoformat()}])
    yield "epoch", True
    yield "wait", "5 minutes"
    yield "batch", START + timedelta(days=1)


def live(life, seed):
    """Take every step, and give what can be seen at the end."""
    for step, of in steps(seed):
        match step:
            case "send":
                topic, partition, values = of
                life.send(*values, topic=topic, partition=partition)
            case "epoch":
                life.epoch(edge=of)
            case "crash":
                life.crash(of)
            case "wait":
                life.wait(of)
            case "batch":
                life.batch(f"{of:%Y-%m-%d}")
    answers = {
        (each.name, side): life.answer(each.name, side)
        for each in life.pipeline.views
        for side in ("merged", "batch", "speed")
    }
    return answers, life.quarantine(), life.watermark, life.engine.cuts()


@pytest.mark.parametrize(
    ("pipeline", "seed"),
    [
        pytest.param(LIFE, 0, id="every kind"),
        pytest.param(ORDERED, 1, id="ordered", marks=pytest.mark.faults),
        pytest.param(ORDERED_SOURCES, 2, id="sources", marks=pytest.mark.faults),
    ],
)
def test_two_engines_give_one_answer(scenario, spark, pipeline, seed):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    now = f"{START + timedelta(days=9):%Y-%m-%d}"
    plain, plain_refused, plain_mark, plain_cuts = live(scenario(pipeline, now=now), seed)
    real, real_refused, real_mark, real_cuts = live(scenario(pipeline, now=now, spark=spark), seed)
    assert (real_refused, real_mark, real_cuts) == (plain_refused, plain_mark, plain_cuts)
    assert real_cuts
    for name in plain:
        assert len(real[name]) == len(plain[name]), name
        for found, expected in zip(in_order(real[name]), in_order(plain[name]), strict=True):
            assert near(found, expected), name
    assert all(plain[each.name, "merged"] for each in pipeline.views)


WITHOUT_IDS = replace(LIFE, source=replace(LIFE.source, event_id=[]))
PLAIN = replace(WITHOUT_IDS, views=[each for each in LIFE.views if not each.where and not each.explode])
"""Of a file within a day nobody need count the rows."""
WITH_IDS = replace(PLAIN, source=LIFE.source, views=[each for each in LIFE.views if not each.explode])
"""Of such a file nobody looks at a row whose id is not there twice."""
WAYS = {
    "one task": {},
    "many tasks": {(work_shares, "LEAST"): 1, (fast_path, "REPORTED_BYTES"): 200},
    "many parts": {
        (work_shares, "IN_A_PART"): 5,
        (repeated_ids, "MOST_TWICE"): 0,
        (repeated_ids, "INLINE"): 0,
        (spilled_states, "UNIT_BYTES"): 500,
    },
}
"""Bounds that a run lowers, beside those of the runs before it."""
COUNTED = ("view", "interval", "rows", "state_rows", "rows_read", "duplicates", "not_selected", "exploded")


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(LIFE, id="ids"),
        pytest.param(WITHOUT_IDS, id="no ids", marks=pytest.mark.faults),
        pytest.param(PLAIN, id="plain", marks=pytest.mark.faults),
        pytest.param(WITH_IDS, id="plain ids", marks=pytest.mark.faults),
        pytest.param(SOURCES, id="sources", marks=pytest.mark.faults),
    ],
)
def test_a_build_is_the_same_both_ways(scenario, spark, pipeline, monkeypatch):
    """By Spark's own aggregation; by the kernel's SQL in one task; in many, that shuffle ids and keep states in files.

    Again with all rows compared whose ids are there twice, and intervals merged piece by piece.
    """
    life = scenario(pipeline, now=f"{START + timedelta(days=9):%Y-%m-%d}", spark=spark)
    for step, of in steps(2):
        if step == "send":
            topic, partition, values = of
            life.send(*values, topic=topic, partition=partition)
        elif step == "epoch":
            life.epoch(edge=True)
    for number in range(3):
        at = [START + timedelta(days=number, hours=hour) for hour in (0, 13, 23)]
        records = [{"id": 900 + number, "who": "ada", "amount": 2, "at": each.isoformat()} for each in at]
        life.send(*records, topic="two", partition=0)
        life.epoch(edge=True)
    engine = life.engine
    master = Master.open(engine.layout)
    cut = master.edge
    days = Interval(START - timedelta(days=1), START + timedelta(days=DAYS + 2))

    def built(run, **how):
        rows = build_intervals(
            spark, engine.pipeline, engine.layout, BuildJob("life", run, cut, (days,)), **how
        )
        counts = sorted(tuple(getattr(row, name) for name in COUNTED) for row in rows)
        shown = {
            view.name: presented(view, engine.layout, rows[0].generation) for view in engine.pipeline.views
        }
        return counts, shown

    known = [
        each.interval
        for each in fast_path.list_touched_files(engine.pipeline, Files.of(master.table), [days], cut)
    ]
    assert any(known) == (not any(each.explode for each in pipeline.views))
    counts, expected = built("general", fast=False)
    assert any(row[COUNTED.index("rows_read")] for row in counts)
    for run, bounds in WAYS.items():
        for (module, name), bound in bounds.items():
            monkeypatch.setattr(module, name, bound)
        found_counts, found = built(run)
        assert found_counts == counts
        for name, rows in expected.items():
            assert rows, name
            for mine, theirs in zip(found[name], rows, strict=True):
                assert near(mine, theirs), name


def test_columns_may_be_called_what_duckdb_calls_places(scenario, spark, monkeypatch):
    """A place that is read of the records would count some of them twice, and others not at all."""
    definition = Pipeline(
        name="life",
        source=KafkaSource(
            topic="one",
            schema="id INT NOT NULL, File_Index INT, file_row_number INT, at TIMESTAMP",
            event_time="at",
            event_id=["id"],
        ),
        views=[View("all", keys=[], window=Tumbling("1 day"), measures={"n": count(), "ids": sum("id")})],
        batch=Batch("1 day", f"{START:%Y-%m-%d}"),
    )
    monkeypatch.setattr(work_shares, "LEAST", 1)
    life = scenario(definition, now=f"{START + timedelta(days=9):%Y-%m-%d}", spark=spark)
    for ids in ([1, 2, 1], [2, 3], [-1]):
        at = START if ids[0] > 0 else START + timedelta(days=2)
        made = [{"id": id, "File_Index": 1, "file_row_number": 1, "at": at.isoformat()} for id in ids]
        life.send(*made, topic="one", partition=0)
        life.epoch(edge=True)
    life.batch(f"{START:%Y-%m-%d}")
    [row] = life.answer("all", "batch")
    assert (row["n"], row["ids"]) == (3, 6)


def presented(view, layout, generation):
    """Return what a generation's states mean, in order."""
    held = Generations.ensure(layout, view).read(generation)
    keep = [*(key.name for key in view.keys), "pane", "interval", "rows"]
    rows = states.present_states(view, held, keep).to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in keep])


def in_order(rows):
    """Sort rows by all that names them."""
    names = ("window_start", "window_end", "grouping", "who", "kind", "item", "window_number")
    return sorted(rows, key=lambda row: [str(row.get(name)) for name in names])


def near(found, expected):
    """Compare two rows; doubles to twelve digits, but for squares that cancel to nothing."""
    return found.keys() == expected.keys() and all(
        math.isclose(value, expected[name], rel_tol=1e-12, abs_tol=1e-12)
        if isinstance(value, float) and expected[name] is not None
        else value == expected[name]
        for name, value in found.items()
    )
