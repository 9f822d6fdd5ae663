"""What is said of a joined number: both rows of each pair, that slices are what their rows make, and why it changes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from random import Random

import pandas as pd
import pyarrow.compute as pc
import pytest
from tests.unit.model.test_joins import ADS, BY_SITE, PAID

from seamline import Lookup, Rule, View, Watermark, count, max, ratio, sum
from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.engine import states
from seamline.lake.publish.generation_history import roll_back_interval
from seamline.lake.publish.lookup_restating import restate_lookup
from seamline.lake.publish.planning import plan_run
from seamline.lake.read import merged_read
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.errors import BadRange, PublishRefused
from seamline.model.protocol.audit import Wrong
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.batch import join_slices
from seamline.plan.batch.build_causes import Kind
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.plan.publish.publication import Decision
from seamline.quality.certify import Certificates
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation, tabulate_rows
from seamline.serve.pipeline_status import status_of
from seamline.spark.stream.catch_up import compute_missing_slices
from seamline.spark.stream.epoch_writer import Writer
from seamline.testing.tables import Tables

EVERY = {
    "clicks": count(),
    "worth": sum("clicked_worth"),
    "dearest": max("clicked_worth"),
    "all": count("left"),
    "hit": count("matched"),
    "missed": count("unmatched"),
    "rate": ratio("hit", "all"),
}
LATE = Watermark("10 minutes", idle_after="1 minute")
PIPELINE = replace(
    ADS,
    source=[replace(source, watermark=LATE) for source in ADS.sources],
    derive=[replace(PAID, before="0 seconds", where="shown_cost IS NULL OR clicked_worth > 0")],
    views=[replace(BY_SITE, measures=EVERY, where="shown_site <> 'y'")],
)
DAY = "2026-01-05"


def shown(ad: str, at: str, cost: int | None = 1) -> dict[str, object]:
    """Return an impression."""
    return {"ad": ad, "site": "x", "cost": cost, "part": 0.5, "at": f"{at}:00Z"}


def clicked(ad: str, at: str, worth: int = 5) -> dict[str, object]:
    """Return a click."""
    return {"ad": ad, "worth": worth, "at": f"{at}:00Z"}


@pytest.fixture
def life(scenario, spark):
    """A day with a pair over its end, and a pair that came after it."""
    made = scenario(PIPELINE, spark=spark, now="2026-01-09")
    made.send(
        shown("a", f"{DAY}T10:00"), shown("b", f"{DAY}T23:40"), shown("c", f"{DAY}T10:20"), topic="shown"
    )
    made.send(clicked("a", f"{DAY}T10:30"), clicked("a", f"{DAY}T10:40", -1), topic="clicked")
    made.epoch()
    made.send(clicked("b", "2026-01-06T00:20"), topic="clicked")
    made.send(shown("z", "2026-01-06T00:50"), topic="shown")
    made.epoch()
    return made


def test_a_day_is_over_when_nothing_can_be_joined_with_its_last_rows(life):
    """Its watermark is past its end, and a click may come until one."""
    life.send(clicked("z", "2026-01-06T01:05"), topic="clicked")
    life.send(shown("z", "2026-01-06T01:05"), topic="shown")
    life.epoch()
    assert life.watermark > parse_moment("2026-01-06")
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert not plan.builds
    assert "; rows up to 60 min after its end count in it" in plan.left_out[0].reason
    [row] = life.answer("by_site", "merged")[:1]
    assert not row.get("complete")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(("MOST_TIMES", -1), id="Spark's join"),
        pytest.param(("ROWS", 1), id="slices", marks=pytest.mark.faults),
    ],
)
def test_a_joined_number_is_taken_apart_to_both_rows(life, how, monkeypatch):
    """The reader sees which click is counted for which impression, however they were joined."""
    monkeypatch.setattr(join_slices, *how)
    for name in ("clicked", "shown"):
        life.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    life.epoch()
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    life.send(clicked("c", f"{DAY}T10:25", 7), topic="clicked")
    life.epoch()
    pipeline, layout = life.pipeline, life.engine.layout
    [view] = pipeline.views
    key, asked = {"shown_site": "x"}, (parse_moment(f"{DAY}T10:00"), None)
    found = explain_number(pipeline, view, layout, key, asked)
    assert found.proven, found.proofs
    told = "\n".join(format_explanation(found))
    assert "pair of shown/0@0 and clicked/0@0, epoch 0" in told
    assert "pair of shown/0@2 and clicked/0@4" in told
    assert "matched: shown/0@2, epoch 3" in told
    assert "clicked/0@1" not in told and "shown/0@1" not in told, (
        "that click is worth nothing, and the other impression is of another hour"
    )
    over = explain_number(pipeline, view, layout, key, (parse_moment(f"{DAY}T23:00"), None))
    assert over.proven
    assert "clicked/0@2" in "\n".join(format_explanation(over))
    table = tabulate_rows(found)
    assert [list(row)[:6] for row in table[:1]] == [
        ["row", "left record", "right record", "epoch", "event time", "right event time"]
    ]
    apart = {(row["row"], str(row["right event time"])) for row in table if row["left record"] == "shown/0@0"}
    assert apart == {("left", ""), ("matched", ""), ("pair", f"{DAY} 10:30:00+00:00")}
    assert not [name for row in table for name in row if name.startswith("_")]
    first = [(row["row"], row["right record"]) for row in table if row["left record"] == "shown/0@0"]
    assert first == [("left", ""), ("matched", ""), ("pair", "clicked/0@0")]
    checks = {
        check.name: check.found
        for each in Certificates.ensure(layout).of(run="run-1")
        for check in each.checks
    }
    said = checks["watermark has passed the end"]
    assert said.endswith("end 2026-01-06T00:00:00Z; rows up to 2026-01-06T01:00:00Z count in it")
    assert checks["rows read = rows in the ledger"] == "9 read, 9 in the ledger"
    said = checks["rows in states = rows read less rows left out"]
    assert said == "7 derived rows in states, 7 made of 9 rows in reach"


def test_a_day_that_was_built_is_built_again_for_a_click_of_the_next_one(life):
    """The click is a row of the day after, which is open: but for the slices nothing says that this day has changed."""
    for name in ("clicked", "shown"):
        life.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    life.epoch()
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert not plan.builds
    life.send(clicked("b", "2026-01-06T00:30", 7), topic="clicked")
    late = life.epoch().number
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert [each.interval.id for each in plan.builds] == [f"{DAY}T00:00:00Z"]
    [cause] = plan.builds[0].causes
    assert (cause.kind, cause.since, cause.rows) == (Kind.JOINED, late, 1)
    assert life.batch() == [f"{DAY}T00:00:00Z"]


def test_slices_of_a_join_are_counted_again(life):
    """An audit that joins other rows than the stream would cry wolf, or nothing."""
    pipeline, layout = life.pipeline, life.engine.layout
    [view] = pipeline.views
    log = CommittedLog.pin(pipeline, layout)
    whole = recount_states(pipeline, view, layout, log)
    assert (whole.findings, whole.states > 0) == ((), True)
    day = Interval(parse_moment(DAY), parse_moment("2026-01-06"))
    assert recount_states(pipeline, view, layout, CommittedLog.pin(pipeline, layout, day)).findings == ()
    for name in ("clicked", "shown"):
        life.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    life.epoch()
    life.batch()
    assert check_published_generations(pipeline, view, layout) == (1, [])
    held = life.engine.writer.slices[view.id]
    held.append(held.table.read().drop_columns(["from_epoch", "to_epoch"]), from_epoch=1, to_epoch=1)
    wrong = recount_states(pipeline, view, layout, CommittedLog.pin(pipeline, layout)).findings
    assert [each.wrong for each in wrong] == [Wrong.SLICES]


@pytest.mark.parametrize("after", [0, *(pytest.param(each, marks=pytest.mark.faults) for each in (-1, 1))])
def test_a_catch_up_makes_what_the_stream_made(life, after):
    """Whatever epochs it begins with: a click of one epoch may be of an impression of an earlier one."""
    life.send(clicked("c", f"{DAY}T10:25", 7), clicked("a", f"{DAY}T10:59", 3), topic="clicked")
    life.epoch()
    engine, [view] = life.engine, life.pipeline.views
    held = engine.writer.slices[view.id]
    missing = compute_missing_slices(engine.spark, engine.writer, held, after=after, until=2)
    made = held.table.refresh().read()
    above = made.filter(pc.greater(made["from_epoch"], after))
    by = ["from_epoch", "to_epoch"]
    one, other = (
        states.combine_states(view, [table], by=by).sort_by([(name, "ascending") for name in (*by, "pane")])
        for table in (missing, above)
    )
    assert one.num_rows
    assert one.to_pylist() == other.to_pylist()


@pytest.mark.faults
def test_a_tenth_of_all_rows_may_have_one_key(scenario, spark):
    """Both layers count its pairs, which are most of all, also those of epochs that came late."""
    dice, made = Random(10), scenario(PIPELINE, spark=spark, now="2026-01-09")
    sent: dict[str, list[tuple[str, int]]] = {"shown": [], "clicked": []}
    for number in range(4):
        for topic, rows in (("shown", 1_000), ("clicked", 250)):
            new = [
                ("hot" if at % 10 == 0 else f"ad {number} {at}", dice.randrange(5 * 60)) for at in range(rows)
            ]
            sent[topic] += new
            make = shown if topic == "shown" else clicked
            made.send(*(make(ad, f"{DAY}T{at // 60:02}:{at % 60:02}") for ad, at in new), topic=topic)
        made.epoch()
        if number == 2:
            made.restart()
    for name in ("clicked", "shown"):
        made.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    made.epoch()
    clicks = pd.DataFrame(sent["clicked"], columns=["ad", "clicked"])
    pairs = pd.DataFrame(sent["shown"], columns=["ad", "shown"]).reset_index().merge(clicks, on="ad")
    pairs = pairs[(pairs.clicked >= pairs.shown) & (pairs.clicked <= pairs.shown + 60)]
    assert len(pairs) > 4_000 > 2 * pairs["index"].nunique()
    for _ in range(2):
        rows = made.answer("by_site", "merged")
        assert sum_of(rows, "clicks") == len(pairs)
        assert sum_of(rows, "hit") == pairs["index"].nunique()
        assert sum_of(rows, "all") == len(sent["shown"])
        assert made.batch() in ([f"{DAY}T00:00:00Z"], [])
    assert made.answer("by_site", "batch") == made.answer("by_site", "merged")


def sum_of(rows, name):
    """Add up a measure of the day."""
    return reduce(add, (row[name] for row in rows if row["window_start"].day == 5))


UNIQUE = replace(
    PIPELINE,
    source=[
        replace(each, schema=f"id INT, {each.schema}", event_id=["id"], dedup_within="6 hours")
        for each in PIPELINE.sources
    ],
)
WRONG = replace(UNIQUE, source=[UNIQUE.sources[0], replace(UNIQUE.sources[1], where="worth > 100")])


def relive(made, *definitions):
    """Send events, some of them twice, each part to the definition that is in force; give all answers."""
    parts = [
        [
            ("shown", [shown("a", f"{DAY}T10:00"), shown("a", f"{DAY}T10:00"), shown("b", f"{DAY}T23:40")]),
            ("clicked", [clicked("a", f"{DAY}T10:30")]),
        ],
        [
            ("shown", [shown("a", f"{DAY}T10:00")]),
            ("clicked", [clicked("a", f"{DAY}T10:30"), clicked("b", "2026-01-06T00:20", 200)]),
        ],
        [("clicked", [clicked("b", "2026-01-06T00:20", 200), clicked("c", f"{DAY}T11:10")])],
        [
            ("shown", [{"ad": "end", "at": "2026-01-06T03:00:00Z"}]),
            ("clicked", [{"ad": "end", "at": "2026-01-06T03:00:00Z"}]),
        ],
    ]
    ids = {"a": 1, "b": 2, "c": 3, "end": 9}
    before = definitions[0]
    for part, definition in zip(parts, definitions, strict=True):
        if definition is not before:
            made.redefine(definition)
        before = definition
        for topic, records in part:
            made.send(*({"id": ids[str(each["ad"])], **each} for each in records), topic=topic)
        made.epoch()
    made.batch()
    return made.answer("by_site", "merged")


@pytest.mark.parametrize("engine", ["plain", pytest.param("spark", marks=pytest.mark.faults)])
def test_copies_that_are_validated_again_are_joined_once(scenario, spark, engine):
    """They are flagged in the order in which they were read, so that the day is what a fresh read would have made."""
    fresh = relive(scenario(UNIQUE, now="2026-01-09"), *[UNIQUE] * 4)
    made = scenario(WRONG, spark=spark if engine == "spark" else None, now="2026-01-09")
    mended = relive(made, WRONG, WRONG, WRONG, UNIQUE)
    of_day = [[row for row in rows if row["window_start"].day == 5] for rows in (mended, fresh)]
    assert of_day[0] == of_day[1]
    [early, late] = of_day[0]
    assert (early["clicks"], early["all"], early["hit"]) == (1, 1, 1)
    assert (late["clicks"], late["all"], late["hit"]) == (1, 1, 1)


TARIFF = Lookup("tariff", "tariff.csv", on={"site": "site"}, columns=["rate INT"])
RATED = replace(
    PIPELINE,
    source=[replace(PIPELINE.sources[0], lookups=[TARIFF]), PIPELINE.sources[1]],
    derive=[replace(PAID, before="0 seconds", where="shown_tariff_rate < 9")],
    views=[replace(BY_SITE, keys=["shown_tariff_rate"], measures=EVERY)],
)


@pytest.mark.parametrize("engine", ["plain", "spark"])
def test_a_joined_row_keeps_what_its_epoch_has_looked_up(scenario, spark, tmp_path, monkeypatch, engine):
    """The click of a later epoch finds the impression with the tariff of then, in both layers and in a build."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "tariff.csv"
    table.write_text("site,rate\nx,2\n")
    made = scenario(RATED, spark=spark if engine == "spark" else None, now="2026-01-09")
    made.send(shown("a", f"{DAY}T10:00"), topic="shown")
    made.epoch()
    table.write_text("site,rate\nx,3\n")
    made.send(shown("b", f"{DAY}T10:10"), topic="shown")
    made.send(clicked("a", f"{DAY}T10:20"), topic="clicked")
    made.epoch()
    table.write_text("site,rate\nx,9\n")
    made.send(shown("c", f"{DAY}T10:10"), topic="shown")
    made.send(clicked("c", f"{DAY}T10:20"), topic="clicked")
    for name in ("clicked", "shown"):
        made.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    made.epoch()
    found = {side: told(made.answer("by_site", side)) for side in ("merged", "speed")}
    assert found["merged"] == found["speed"] == {2: (1, 1, 1), 3: (0, 1, 0), 9: (0, 1, 0)}
    made.batch()
    assert told(made.answer("by_site", "batch")) == found["speed"]
    made.send(clicked("b", f"{DAY}T10:30"), topic="clicked")
    made.epoch()
    assert told(made.answer("by_site", "merged")) == {**found["speed"], 3: (1, 1, 1)}


END = {"ad": "end", "at": "2026-01-06T03:00:00Z"}
NO_SEVEN = Rule("no seven", "cost IS NULL OR cost <> 7")


@pytest.fixture(params=["plain", pytest.param("spark", marks=pytest.mark.faults)])
def rated(request, scenario, spark, tmp_path, monkeypatch):
    """A day whose impressions found a wrong tariff, over and built; give it, and what corrects the table."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "tariff.csv"
    table.write_text("site,rate\nx,2\n")
    made = scenario(RATED, spark=spark if request.param == "spark" else None, now="2026-01-09")
    made.send(shown("a", f"{DAY}T10:00"), shown("b", f"{DAY}T23:40"), topic="shown")
    made.send(clicked("a", f"{DAY}T10:20"), topic="clicked")
    for name in ("clicked", "shown"):
        made.send(END, topic=name)
    made.epoch()
    made.batch()
    assert told(made.answer("by_site")) == {2: (1, 2, 1)}
    return made, lambda rate: table.write_text(f"site,rate\nx,{rate}\n")


def proven(made, rate, hour):
    """Every number is what its rows make, and slices are what their epochs' rows make."""
    if isinstance(made.engine, Tables):
        pipeline, layout, [view] = made.pipeline, made.engine.layout, made.pipeline.views
        asked = (parse_moment(f"{DAY}T{hour}:00"), None)
        found = explain_number(pipeline, view, layout, {"shown_tariff_rate": rate}, asked)
        assert found.proven, found.proofs
        log = CommittedLog.pin(pipeline, layout)
        judging = partial(open_reprocessing, pipeline, layout)
        assert recount_states(pipeline, view, layout, log, judging).findings == ()
        return "\n".join(format_explanation(found))
    return "reprocessed: tariff"


def test_joined_rows_are_restated(rated):
    """The view stands still until the day is built; what comes later is joined with the corrected impression."""
    made, correct = rated
    correct(5)
    made.restate("tariff", DAY)
    made.send(clicked("b", "2026-01-06T00:20"), topic="clicked")
    made.epoch()
    made.restart()
    if isinstance(made.engine, Tables):
        made.engine.catch_up()
    assert told(made.answer("by_site")) == {2: (1, 2, 1)}
    assert made.batch() == [f"{DAY}T00:00:00Z"]
    assert told(made.answer("by_site")) == {5: (2, 2, 2)}
    assert "reprocessed: tariff" in proven(made, 5, 23)
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    assert told(made.answer("by_site")) == {5: (3, 2, 2)}
    proven(made, 5, 10)
    made.batch()
    assert told(made.answer("by_site", "batch")) == {5: (3, 2, 2)}


@pytest.mark.parametrize("rated", ["plain", pytest.param("spark", marks=pytest.mark.faults)], indirect=True)
def test_a_view_waits_for_no_interval_that_new_rules_have_emptied(rated):
    """What was read of the day before is refused now, so nothing is ever built of it."""
    made, correct = rated
    made.send(shown("q", "2026-01-04T10:00", 7), topic="shown")
    made.epoch()
    made.batch()
    judged = [
        replace(each, rules=[*each.rules, NO_SEVEN]) if each.name == "shown" else each
        for each in RATED.sources
    ]
    made.redefine(replace(RATED, source=judged))
    made.epoch()
    made.batch()
    correct(5)
    made.restate("tariff", "2026-01-04", "2026-01-06")
    assert made.batch() == [f"{DAY}T00:00:00Z"]
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    if isinstance(made.engine, Tables):
        made.engine.catch_up()
    assert told(made.answer("by_site")) == {5: (2, 2, 1)}


@pytest.mark.faults
@pytest.mark.parametrize("rated", ["spark"], indirect=True)
def test_a_view_that_waits_for_what_somebody_rolled_back_says_so(rated):
    """No run of dirty intervals builds it, so that is not what it asks for."""
    made, correct = rated
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    made.batch()
    [view], engine = made.pipeline.views, made.engine
    decision = Decision(actor="ada", reason="odd", rollback=True)
    roll_back_interval(
        made.pipeline, engine.layout, "by_site", made.pipeline.grid.of(parse_moment(DAY)), decision=decision
    )
    correct(5)
    made.restate("tariff", DAY)
    assert made.batch() == []
    engine.catch_up()
    why = engine.writer.errors[view.id]
    assert "2026-01-05T00:00:00Z was rolled back by ada: odd" in why
    assert "`seamline run ads --from 2026-01-05T00:00:00Z`" in why
    assert made.batch(DAY) == [f"{DAY}T00:00:00Z"]
    engine.catch_up()
    assert not engine.writer.behind
    assert told(made.answer("by_site")) == {5: (2, 2, 1)}


@pytest.mark.parametrize("rated", ["plain", pytest.param("spark", marks=pytest.mark.faults)], indirect=True)
def test_a_restated_row_finds_others(rated):
    """A rate of nine is joined with nothing; taken back, what was read meanwhile is joined with it, too."""
    made, correct = rated
    correct(9)
    made.restate("tariff", DAY)
    made.batch()
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    assert told(made.answer("by_site")) == {9: (0, 2, 0)}
    correct(3)
    made.restate("tariff", DAY)
    made.send(clicked("a", f"{DAY}T10:55"), clicked("b", "2026-01-06T00:20"), topic="clicked")
    made.epoch()
    assert told(made.answer("by_site")) == {9: (0, 2, 0)}
    made.batch()
    assert told(made.answer("by_site")) == {3: (4, 2, 2)}
    proven(made, 3, 10)


@pytest.mark.faults
@pytest.mark.parametrize("rated", ["spark"], indirect=True)
def test_a_restatement_is_joined_from_the_epoch_on_that_names_it(rated):
    """A build whose cut is before it is made of rows as slices were, whatever was decided meanwhile."""
    made, correct = rated
    engine, span = made.engine, made.pipeline.grid.of(parse_moment(DAY))
    correct(5)
    restate_lookup(engine.pipeline, engine.layout, "tariff", span, actor="ada", reason="wrong", now=made.now)
    assert "restated for derived rows as soon as the stream runs: tariff" in "\n".join(
        status_of(engine.pipeline, engine.layout)
    )
    assert made.batch() == []
    made.batch(DAY)
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    assert told(made.answer("by_site")) == {2: (2, 2, 1)}
    proven(made, 2, 10)
    engine.commit_empty(restated=1)
    [view] = engine.pipeline.views
    engine.catch_up()
    assert "2026-01-05T00:00:00Z not built with it yet" in engine.writer.errors[view.id]
    assert made.batch() == [f"{DAY}T00:00:00Z"]
    assert told(made.answer("by_site")) == {5: (2, 2, 1)}


@pytest.mark.faults
@pytest.mark.parametrize("rated", ["spark"], indirect=True)
def test_an_epoch_of_the_past_is_answered_with_the_decisions_of_one_epoch(rated):
    """The day was built above it with the corrected tariff: what answers as of then is the generation before."""
    made, correct = rated
    correct(5)
    made.restate("tariff", DAY)
    made.send(clicked("b", "2026-01-06T00:20"), topic="clicked")
    between = made.epoch().number
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    cut = made.epoch().number
    made.batch()
    assert as_of(made, between) == ({2: (1, 2, 1)}, 0)
    assert as_of(made, cut) == ({5: (3, 2, 2)}, cut)


def as_of(made, epoch):
    """Give what ``told`` does as of an epoch, and up to which the day is complete."""
    [view] = made.pipeline.views
    request = ReadRequest(as_of=epoch)
    answer = merged_read.read_merged_answer(made.pipeline, view, made.engine.layout, request)
    return told(answer.table.to_pylist()), answer.intervals[f"{DAY}T00:00:00Z"].complete_to


@pytest.mark.parametrize("rated", ["plain", pytest.param("spark", marks=pytest.mark.faults)], indirect=True)
def test_an_open_interval_is_not_restated(rated):
    """The view would stand still until it has closed."""
    made, correct = rated
    correct(5)
    with pytest.raises(BadRange, match="which is open: by_site would stand still"):
        made.restate("tariff", "2026-01-06")


@pytest.mark.faults
@pytest.mark.parametrize("rated", ["spark"], indirect=True)
def test_no_generation_is_served_that_slices_do_not_fit(rated):
    """What was built before a restatement has other rows than those that later ones were joined with."""
    made, correct = rated
    correct(5)
    made.restate("tariff", DAY)
    made.batch()
    day, why = made.pipeline.grid.of(parse_moment(DAY)), Decision(actor="ada", reason="looks odd")
    with pytest.raises(PublishRefused, match="was built before look-up tariff was restated"):
        roll_back_interval(made.pipeline, made.engine.layout, "by_site", day, decision=why)


def test_a_join_of_other_rows_is_not_restated(scenario, spark, tmp_path, monkeypatch):
    """A tariff by which impressions would be refused is no concern of clicks and sales: their view goes on."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "tariff.csv"
    table.write_text("site,rate\nx,2\n")
    views, clicks = RATED.source[0], RATED.source[1]
    made = scenario(
        replace(
            RATED,
            source=[
                replace(views, rules=[Rule("sane", "tariff_rate IS NULL OR tariff_rate < 100")]),
                clicks,
                replace(clicks, name="sold", topic="sold"),
            ],
            derive=[
                *RATED.derive,
                replace(PAID, name="sales", left="clicked", right="sold", before="0 seconds", after="1 hour"),
            ],
            views=[
                *RATED.views,
                View("by_sale", of="sales", keys=[], window=BY_SITE.window, measures={"sales": count()}),
            ],
        ),
        spark=spark,
        now="2026-01-09",
    )
    made.send(shown("a", f"{DAY}T10:00"), topic="shown")
    made.send(clicked("a", f"{DAY}T10:20"), topic="clicked")
    for name in ("clicked", "shown", "sold"):
        made.send(END, topic=name)
    made.epoch()
    made.batch()
    table.write_text("site,rate\nx,500\n")
    made.restate("tariff", DAY)
    made.restart()
    made.send(clicked("a", f"{DAY}T10:30"), topic="sold")
    made.epoch()
    assert {id.partition("/")[0] for id in made.engine.writer.behind} == {"by_site"}
    assert sum_of(made.answer("by_sale"), "sales") == 1
    [sliced] = [each for each in made.engine.writer.slices.values() if each.view.name == "by_sale"]
    assert compute_missing_slices(spark, made.engine.writer, sliced, after=0, until=2).num_rows == 1


@pytest.mark.faults
@pytest.mark.parametrize("rated", ["spark"], indirect=True)
def test_slices_do_not_answer_for_a_restated_generation_that_is_lost(rated):
    """Those before the restatement were made with the wrong tariff, and what was joined since with the right one."""
    made, correct = rated
    engine, [view] = made.engine, made.pipeline.views
    place = Path(engine.layout.generations(view))
    shutil.copytree(place, backup := place.with_name("backup"))
    correct(5)
    made.restate("tariff", DAY)
    made.batch()
    made.send(clicked("a", f"{DAY}T10:50"), topic="clicked")
    made.epoch()
    shutil.rmtree(place)
    backup.rename(place)
    engine.derived.forget()
    engine.token += 1
    Writer(engine.layout, engine.pipeline, engine.token, acceptance=Acceptance("ada", "it is lost"))
    made.restart()
    assert told(made.answer("by_site")) == {}, "the day waits for a build"
    engine.commit_empty()
    assert made.batch() == [f"{DAY}T00:00:00Z"]
    assert told(made.answer("by_site")) == {5: (2, 2, 1)}


def told(rows):
    """Give pairs, left rows and those that are matched, of the day, by the tariff."""
    found = {}
    for row in (row for row in rows if row["window_start"].day == 5):
        before = found.get(row["shown_tariff_rate"], (0, 0, 0))
        found[row["shown_tariff_rate"]] = tuple(map(add, before, (row["clicks"], row["all"], row["hit"])))
    return found
