"""Any life of rows and their versions gives the same answers in plain Python and on Spark and Delta."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import timedelta

import pyarrow.compute as pc
import pytest
from tests.conformance.joins.test_joins import compare
from tests.conformance.lives import START, end, happen, spoil, with_ids

from seamline import (
    AsOf,
    Batch,
    KafkaSource,
    Lookup,
    Pipeline,
    Sliding,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    sum,
)
from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.engine import joined_index, states
from seamline.lake.publish.planning import plan_run
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.protocol.audit import Wrong
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.batch import join_slices
from seamline.plan.batch.attribution import ChangeCause
from seamline.quality.run_comparing import compare_run
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation
from seamline.spark.build.build import build_intervals
from seamline.spark.stream.catch_up import compute_missing_slices
from seamline.spark.stream.derived import joined_rows

DAY = "2026-01-05"
NOW = "2026-01-07"
HOUR = Tumbling("1 hour")
PRICED = {"n": count(), "worth": sum("prices_price"), "mean": avg("prices_price")}
SHOP = Pipeline(
    name="shop",
    source=[
        KafkaSource(
            name="orders",
            topic="orders",
            schema="sku STRING, place STRING, amount INT, at TIMESTAMP",
            event_time="at",
            where="amount IS NULL OR amount >= 0",
            watermark=Watermark("20 minutes", idle_after="1 minute"),
        ),
        KafkaSource(
            name="prices",
            topic="prices",
            schema="sku STRING, price INT, tier STRING, at TIMESTAMP",
            event_time="at",
            watermark=Watermark("30 minutes", idle_after="1 minute"),
        ),
    ],
    derive=[
        AsOf("priced", left="orders", versions="prices", on={"sku": "sku"}, at_most="90 minutes"),
        AsOf(
            "known",
            left="orders",
            versions="orders",
            on={"sku": "sku", "place": "place"},
            at_most="1 hour",
            left_where="amount > 1",
            versions_where="amount = 1",
            null_safe=["place"],
        ),
    ],
    views=[
        View("by_place", of="priced", keys=["orders_place"], window=HOUR, measures=PRICED),
        View(
            "by_tier",
            of="priced",
            keys=["prices_tier"],
            window=Sliding("2 hours", "1 hour"),
            where="orders_amount > 0",
            measures={"n": count(), "worth": sum("prices_price"), "bare": count(where="prices_sku IS NULL")},
        ),
        View("before", of="known", keys=["left_place"], window=HOUR, measures={"n": count("right_amount")}),
        View("orders", of="orders", keys=["place"], window=HOUR, measures={"n": count()}),
    ],
    batch=Batch("1 hour", DAY),
)
COPIED = with_ids(SHOP)


def steps(seed):
    """Make a life: the same steps for both engines."""
    dice = random.Random(seed)
    clock = 0.0
    for _ in range(9):
        clock += dice.choice([10, 30, 60])
        for topic in ("orders", "prices"):
            records = []
            for _ in range(dice.randint(0, 5)):
                late = dice.choice([0, 0, 5, 20, 200])
                moment = START + timedelta(minutes=max(clock - late - 5 * dice.randint(0, 4), 0))
                own = (
                    {"place": dice.choice(["x", "y", None]), "amount": dice.choice([None, -1, 1, 2])}
                    if topic == "orders"
                    else {"tier": dice.choice(["low", "high"]), "price": dice.choice([None, 3, 4])}
                )
                records.append({"sku": dice.choice(["a", "b", None]), "at": moment.isoformat(), **own})
            yield "send", (topic, spoil(dice, records))
        yield from happen(dice)
    yield from end(["orders", "prices"])


SEEDS = [int(each) for each in os.environ.get("JOIN_SEEDS", "3").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_engines_find_the_same_versions(scenario, spark, seed, monkeypatch):
    """If this fails, one of the two is wrong: the time line says after which steps."""
    monkeypatch.setattr(join_slices, "ROWS", 2)
    compare(scenario, spark, SHOP, lambda: steps(seed))


def order(sku: str, at: str, amount: int = 1, place: str = "x") -> dict[str, object]:
    """Return an order."""
    return {"sku": sku, "place": place, "amount": amount, "at": f"{at}:00Z"}


def price(sku: str, at: str, price: int, tier: str = "low") -> dict[str, object]:
    """Return a price, which is valid from then on."""
    return {"sku": sku, "price": price, "tier": tier, "at": f"{at}:00Z"}


LONG = replace(
    SHOP,
    source=[replace(each, watermark=Watermark("10 minutes", idle_after="1 minute")) for each in SHOP.sources],
    derive=[replace(SHOP.derive[0], at_most="1 day")],
    views=SHOP.views[:2],
    batch=Batch("1 day", DAY),
)


@pytest.fixture
def life(scenario, spark):
    """A day of orders, of which one has a price, and then a better one, and one has none before its day is over."""
    made = scenario(LONG, spark=spark, now="2026-01-09")
    made.send(order("a", f"{DAY}T10:00"), order("b", f"{DAY}T10:10"), topic="orders")
    made.send(price("a", f"{DAY}T08:00", 5), topic="prices")
    made.epoch()
    made.send(price("a", f"{DAY}T09:00", 7, "high"), topic="prices")
    made.send(order("a", f"{DAY}T09:30"), order("a", f"{DAY}T08:30"), topic="orders")
    made.epoch()
    return made


def end_day(life) -> None:
    """Let the watermark pass the day's end."""
    for topic in ("orders", "prices"):
        life.send({"sku": topic, "at": "2026-01-06T03:00:00Z"}, topic=topic)
    life.epoch()


def totals(life, view: str = "by_place", side: str = "merged") -> dict[int, tuple[int, int | None]]:
    """Return by hour of the first day how many orders there are, and what they are worth."""
    rows = life.answer(view, side)
    return {
        row["window_start"].hour: (row["n"], row["worth"]) for row in rows if row["window_start"].day == 5
    }


def require_right_slices(life) -> None:
    """Require that an audit makes the same slices of every view."""
    for view in life.pipeline.views:
        whole = recount_states(
            life.pipeline, view, life.engine.layout, CommittedLog.pin(life.pipeline, life.engine.layout)
        )
        assert (whole.findings, whole.states > 0) == ((), True), view.name


def test_a_late_version_takes_the_place_of_the_older_one(life):
    """In the slices as in a build: the order of 10 had the price of 8, until that of 9 came."""
    assert totals(life) == {10: (2, 7), 9: (1, 7), 8: (1, 5)}
    require_right_slices(life)
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    assert totals(life) == totals(life, side="batch") == totals(life, side="speed")
    require_right_slices(life)
    pipeline, layout = life.pipeline, life.engine.layout
    assert check_published_generations(pipeline, pipeline.views[0], layout) == (1, [])
    life.send(price("a", f"{DAY}T09:45", 9), price("b", f"{DAY}T10:10", 2), topic="prices")
    late = life.epoch().number
    assert totals(life) == {10: (2, 11), 9: (1, 7), 8: (1, 5)}
    require_right_slices(life)
    plan = plan_run(pipeline, layout, asked=None, dirty=True)
    assert [each.interval.id for each in plan.builds] == [f"{DAY}T00:00:00Z"]
    assert plan.builds[0].causes[0].since == late
    life.epoch()
    life.engine.upkeep()
    assert totals(life) == {10: (2, 11), 9: (1, 7), 8: (1, 5)}
    require_right_slices(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    assert totals(life) == totals(life, side="batch") == {10: (2, 11), 9: (1, 7), 8: (1, 5)}
    require_right_slices(life)


def test_slices_that_are_wrong_are_found(life):
    """An audit that joins other rows than the stream would cry wolf, or nothing."""
    day = Interval(parse_moment(DAY), parse_moment("2026-01-06"))
    pipeline, layout = life.pipeline, life.engine.layout
    [view, _] = pipeline.views
    assert recount_states(pipeline, view, layout, CommittedLog.pin(pipeline, layout, day)).findings == ()
    held = life.engine.writer.slices[view.id]
    held.append(held.table.read().drop_columns(["from_epoch", "to_epoch"]), from_epoch=1, to_epoch=1)
    wrong = recount_states(pipeline, view, layout, CommittedLog.pin(pipeline, layout)).findings
    assert [each.wrong for each in wrong] == [Wrong.SLICES]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(("MOST_TIMES", -1), id="Spark's sort"),
        pytest.param(("ROWS", 1), id="slices", marks=pytest.mark.faults),
    ],
)
def test_a_number_is_taken_apart_to_both_rows(life, how, monkeypatch):
    """The reader sees which price an order has, and that one has none."""
    monkeypatch.setattr(join_slices, *how)
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    life.send(price("b", f"{DAY}T10:00", 2), topic="prices")
    life.epoch()
    pipeline, layout = life.pipeline, life.engine.layout
    [by_place, by_tier] = pipeline.views
    asked = (parse_moment(f"{DAY}T10:00"), None)
    found = explain_number(pipeline, by_place, layout, {"orders_place": "x"}, asked)
    assert found.proven, found.proofs
    said = "\n".join(format_explanation(found))
    assert "orders/0@0 and prices/0@1" in said
    assert "prices/0@0" not in said
    other = (parse_moment("2026-01-06T03:00"), None)
    bare = explain_number(pipeline, by_place, layout, {"orders_place": None}, other)
    assert bare.proven, bare.proofs
    assert "left: orders/0@4" in "\n".join(format_explanation(bare))
    for tier, wanted in (("low", 1), ("high", 2)):
        asked = (parse_moment(f"{DAY}T09:00"), None)
        found = explain_number(pipeline, by_tier, layout, {"prices_tier": tier}, asked)
        assert found.proven, found.proofs
        assert len([line for line in format_explanation(found) if "orders/0@" in line]) == wanted, tier


@pytest.mark.parametrize("after", [0, *(pytest.param(each, marks=pytest.mark.faults) for each in (-1, 1))])
def test_a_catch_up_makes_what_the_stream_made(life, after):
    """Whatever epochs it begins with, as one set of slices: a version takes the place of one from before them."""
    life.send(price("b", f"{DAY}T10:00", 2), price("a", f"{DAY}T08:10", 3), topic="prices")
    life.epoch()
    engine = life.engine
    for view in life.pipeline.views:
        held = engine.writer.slices[view.id]
        missing = compute_missing_slices(engine.spark, engine.writer, held, after=after, until=2)
        assert {*missing["from_epoch"].to_pylist()} == {after + 1}
        made = held.table.refresh().read()
        above = made.filter(pc.greater(made["from_epoch"], after))
        by = [(name, "ascending") for name in ["pane", *(key.name for key in view.keys)]]
        one, other = (
            states.drop_zeros(view, states.combine_states(view, [each])).sort_by(by)
            for each in (missing, above)
        )
        assert one.num_rows
        assert one.to_pylist() == other.to_pylist()


@pytest.mark.faults
def test_a_view_that_is_behind_is_caught_up_and_compared(life, monkeypatch):
    """What it lacks is added as one set; a build before that is explained by it, and is no alarm."""
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]

    def fails(*_: object) -> None:
        raise joined_index.TooManyPairs("not today")

    life.send(price("a", f"{DAY}T09:45", 9), price("b", f"{DAY}T10:10", 2), topic="prices")
    with monkeypatch.context() as patched:
        patched.setattr(joined_rows, "change_latest", fails)
        life.epoch()
    engine, pipeline = life.engine, life.pipeline
    assert {*engine.writer.behind} == {view.id for view in pipeline.views}
    day = pipeline.grid.named(f"{DAY}T00:00:00Z")
    job = BuildJob(pipeline.name, "again", engine.writer.master.epoch, (day,))
    build_intervals(engine.spark, pipeline, engine.layout, job)
    found = compare_run(pipeline, engine.layout, "again")
    assert [each.alarm for each in found if each.alarm] == []
    assert {cause for each in found for cause in each.causes} == {ChangeCause.BEHIND.value}
    engine.catch_up()
    life.epoch()
    assert not engine.writer.behind
    assert totals(life)[10] == (2, 11)
    require_right_slices(life)


def test_an_epoch_that_fails_changes_once(life):
    """Its versions come again under another number; what a dead attempt has left is not counted."""
    life.send(price("a", f"{DAY}T09:45", 9), topic="prices")
    life.crash("slices")
    life.epoch()
    assert totals(life)[10] == (2, 9)
    require_right_slices(life)


@pytest.mark.faults
@pytest.mark.parametrize("seed", SEEDS)
def test_versions_that_come_twice_change_nothing(scenario, spark, seed):
    """Within the horizon copies are in neither layer, on both engines."""

    def life():
        dice, known = random.Random(seed), 0
        for step, of in steps(seed):
            if step == "send":
                topic, values = of
                mine = [
                    {"id": known + at, **each} for at, each in enumerate(values) if isinstance(each, dict)
                ]
                known += len(mine)
                yield step, (topic, [*mine, *dice.choices(mine, k=2)] if mine else mine)
            else:
                yield step, of

    compare(scenario, spark, COPIED, life)


TARIFF = Lookup("tariff", "tariff.csv", on={"tier": "tier"}, columns=["rate INT"])
RATED = replace(
    LONG,
    source=[LONG.sources[0], replace(LONG.sources[1], lookups=[TARIFF])],
    derive=[replace(LONG.derive[0], versions_where="tariff_rate < 9")],
    views=[
        View(
            "by_place",
            of="priced",
            keys=["orders_place"],
            window=HOUR,
            measures={"n": count(), "worth": sum("prices_tariff_rate")},
        )
    ],
)


@pytest.mark.parametrize("engine", ["plain", pytest.param("spark", marks=pytest.mark.faults)])
def test_a_corrected_look_up_chooses_other_versions(scenario, spark, engine, tmp_path, monkeypatch):
    """A price that was none is one, and takes the place of another, once the days in reach are built."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "tariff.csv"
    table.write_text("tier,rate\nlow,2\nhigh,9\n")
    made = scenario(RATED, spark=spark if engine == "spark" else None, now="2026-01-09")
    made.send(order("a", f"{DAY}T10:00"), topic="orders")
    made.send(price("a", f"{DAY}T08:00", 5), price("a", f"{DAY}T09:00", 7, "high"), topic="prices")
    made.epoch()
    for topic in ("orders", "prices"):
        made.send({"sku": "end", "at": "2026-01-07T03:00:00Z"}, topic=topic)
    made.epoch()
    made.batch()
    assert totals(made)[10] == (1, 2)
    table.write_text("tier,rate\nlow,2\nhigh,3\n")
    made.restate("tariff", DAY)
    made.epoch()
    made.batch()
    made.send(order("a", f"{DAY}T11:00"), topic="orders")
    made.epoch()
    assert totals(made)[10] == (1, 3)
    assert totals(made)[11] == (1, 3)
    if engine == "spark":
        log = CommittedLog.pin(made.pipeline, made.engine.layout)
        judging = lambda decisions: open_reprocessing(made.pipeline, made.engine.layout, decisions)  # noqa: E731
        [view] = made.pipeline.views
        assert recount_states(made.pipeline, view, made.engine.layout, log, judging).findings == ()
