"""What is said of an emitted number: the calls and states behind it, that slices are what rows make, and how they are
caught up."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc
import pytest
from tests.unit.process_functions import Abandoned, Fails

from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, Watermark, avg, count, sum
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.engine import states
from seamline.lake.publish.planning import plan_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.definition.processes import Process
from seamline.model.protocol.audit import Wrong
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.batch.attribution import ChangeCause
from seamline.quality.run_comparing import compare_run
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation, tabulate_rows
from seamline.spark.build.build import build_intervals
from seamline.spark.build.reprocessing import reprocess_epochs
from seamline.spark.stream.catch_up import compute_missing_slices
from seamline.spark.stream.derived.folded_rows import FoldedRows

DAY = "2026-01-05"
SOURCE = KafkaSource(
    name="clicks",
    topic="clicks",
    schema="user STRING, total DECIMAL(10,2), name STRING, until TIMESTAMP, at TIMESTAMP, seen TIMESTAMP",
    event_time="at",
    watermark=Watermark("10 minutes", idle_after="1 minute"),
)
LOST = View(
    "lost",
    of="carts",
    keys=["user", "kind"],
    window=Tumbling("1 hour"),
    measures={"n": count(), "amount": sum("amount"), "mean": avg("amount")},
)
CARTS = Pipeline(
    name="carts",
    source=[SOURCE],
    derive=[
        Process("carts", of="clicks", by=Abandoned, keys=["user"], begin="1 day"),
        Process("names", of="clicks", by=Fails, keys=["user"], begin="6 hours"),
    ],
    views=[
        LOST,
        View(
            "refunds", of="carts.refunds", keys=["user"], window=Tumbling("1 hour"), measures={"n": count()}
        ),
        View("raised", of="names.errors", keys=["call"], window=Tumbling("1 hour"), measures={"n": count()}),
    ],
    batch=Batch("1 day", DAY),
)


def click(user: str, at: str, total: str = "2", name: str = "x") -> dict[str, object]:
    """Return a click."""
    return {"user": user, "total": total, "name": name, "at": f"{at}:00Z", "seen": f"{at}:00Z"}


@pytest.fixture
def life(scenario, spark):
    """A day with a cart that was left, one that was not, a refund, and a row for which a function raises."""
    made = scenario(CARTS, spark=spark, now="2026-01-09")
    made.send(
        click("ada", f"{DAY}T10:00"),
        click("bob", f"{DAY}T10:10", "3.5"),
        click("ada", f"{DAY}T10:50", "4"),
        topic="clicks",
    )
    made.epoch()
    made.send(click("bob", f"{DAY}T10:30", "-1"), click("eve", f"{DAY}T11:00", "5", "bad"), topic="clicks")
    made.epoch()
    return made


def end_day(life) -> None:
    """Let the watermark pass the day's end."""
    life.send(click("zoe", "2026-01-06T00:20"), topic="clicks")
    life.epoch()


def test_an_emitted_number_is_taken_apart_to_its_calls(life):
    """The reader sees which timer fired, and what the state was."""
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    pipeline, layout = life.pipeline, life.engine.layout
    lost = pipeline.view("lost")
    asked = (parse_moment(f"{DAY}T10:00"), None)
    found = explain_number(pipeline, lost, layout, {"user": "ada", "kind": "abandoned"}, asked)
    assert found.proven, found.proofs
    told = "\n".join(format_explanation(found))
    assert "timer at 2026-01-05T10:30:00Z: user=ada, kind=abandoned, amount=2.00; " in told
    assert "cart=2.00 -> no state; rows folded 1: clicks/0@0" in told
    # A late click: the cart was not left after all.
    life.send(click("ada", f"{DAY}T10:20", "7"), topic="clicks")
    life.epoch()
    later = explain_number(pipeline, lost, layout, {"user": "ada", "kind": "abandoned"}, asked)
    assert later.proven, later.proofs
    assert (later.row["batch_part"], later.row["speed_part"], later.row["amount"]) == (1, 0, 7)
    # The generation's, and what the slice changes of it: one row withdrawn, one added.
    assert [(part.rows, part.values["amount"]) for part in later.parts] == [(1, 2), (0, 5)]
    [row] = tabulate_rows(later)
    assert row["called by"] == "timer" and row["of record"] == "" and row["amount"] == 7
    assert row["rows folded"] == "2: clicks/0@0, clicks/0@6"
    raised = explain_number(
        pipeline, pipeline.view("raised"), layout, {"call": "row"}, (parse_moment(f"{DAY}T11:00"), None)
    )
    assert raised.proven
    assert "row of clicks/0@4 at 2026-01-05T11:00:00Z" in "\n".join(format_explanation(raised))


def test_slices_of_a_process_are_counted_again(life):
    """By interval: what an epoch changes depends on all before it."""
    pipeline, layout = life.pipeline, life.engine.layout
    life.send(click("ada", f"{DAY}T10:20", "7"), topic="clicks")
    life.epoch()
    for view in pipeline.views:
        whole = recount_states(pipeline, view, layout, CommittedLog.pin(pipeline, layout))
        assert (whole.findings, whole.states > 0) == ((), True), view.name
    day = Interval(parse_moment(DAY), parse_moment("2026-01-06"))
    lost = pipeline.view("lost")
    assert recount_states(pipeline, lost, layout, CommittedLog.pin(pipeline, layout, day)).findings == ()
    end_day(life)
    life.batch()
    assert check_published_generations(pipeline, lost, layout) == (1, [])
    life.send(click("ada", f"{DAY}T09:50", "1"), topic="clicks")
    life.epoch()
    assert recount_states(pipeline, lost, layout, CommittedLog.pin(pipeline, layout)).findings == ()
    held = life.engine.writer.slices[lost.id]
    held.append(held.table.read().drop_columns(["from_epoch", "to_epoch"]), from_epoch=3, to_epoch=3)
    wrong = recount_states(pipeline, lost, layout, CommittedLog.pin(pipeline, layout)).findings
    assert [each.wrong for each in wrong] == [Wrong.SLICES]


def require_same_states(life, after: int) -> None:
    """Require that catching up above an epoch makes, as one set, what the stream has made up to the third."""
    engine = life.engine
    for view in life.pipeline.views:
        held = engine.writer.slices[view.id]
        missing = compute_missing_slices(engine.spark, engine.writer, held, after=after, until=3)
        assert {*missing["from_epoch"].to_pylist()} <= {after + 1}
        made = held.table.refresh().read()
        above = made.filter(pc.greater(made["from_epoch"], after))
        one, other = (
            states.drop_zeros(view, states.combine_states(view, [each])).sort_by(
                [(name, "ascending") for name in ["pane", *(key.name for key in view.keys)]]
            )
            for each in (missing, above)
        )
        assert one.to_pylist() == other.to_pylist(), view.name


@pytest.mark.parametrize("after", [1, *(pytest.param(each, marks=pytest.mark.faults) for each in (-1, 0, 2))])
def test_a_catch_up_makes_what_the_stream_made(life, after):
    """Rows that are late, timers that have fired meanwhile, and keys of which nothing has changed."""
    life.send(click("ada", f"{DAY}T10:20", "7"), click("eve", f"{DAY}T12:00", "5"), topic="clicks")
    life.epoch()
    end_day(life)
    require_same_states(life, after)


@pytest.mark.faults
def test_a_day_is_built_again_for_a_row_in_the_place_of_another(life):
    """The cart was left with another total: as many rows as before are shown, and nobody calls them certified."""
    provisional = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert not provisional.builds
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert not plan.builds
    life.send(click("ada", f"{DAY}T10:20", "7"), topic="clicks")
    late = life.epoch().number
    lost = life.pipeline.view("lost")
    answer = read_merged_answer(life.pipeline, lost, life.engine.layout, ReadRequest())
    told = {
        (row["user"], row["window_start"].hour): (row["amount"], row["certified"])
        for row in answer.table.to_pylist()
    }
    assert told["ada", 10] == (7, False)
    assert told["ada", 11] == (4, True)
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    assert [each.interval.id for each in plan.builds] == [f"{DAY}T00:00:00Z"]
    assert plan.builds[0].causes[0].since == late
    assert life.batch() == [f"{DAY}T00:00:00Z"]


def test_an_epoch_that_fails_is_folded_once(life):
    """Its rows are read again, under another number; a driver that dies knows nothing of them, this one forgets."""
    late = click("ada", f"{DAY}T10:20", "7")
    life.send(late, topic="clicks")
    life.crash("slices")
    life.epoch()
    lost = life.pipeline.view("lost")
    log = CommittedLog.pin(life.pipeline, life.engine.layout)
    assert recount_states(life.pipeline, lost, life.engine.layout, log).findings == ()
    ada = [row["amount"] for row in life.answer("lost") if row["user"] == "ada"]
    assert ada == [7]


@pytest.mark.faults
def test_a_view_that_is_born_later_is_read_while_it_waits_for_its_build(life):
    """A late row withdraws what was emitted before the view was: alone, that is less than nothing."""
    again = replace(LOST, name="again")
    life.redefine(replace(CARTS, views=[*CARTS.views, again]))
    life.send(click("ada", f"{DAY}T10:20", "7"), topic="clicks")
    life.epoch()
    assert [row for row in life.answer("again") if row["user"] == "ada"] == []
    end_day(life)
    life.batch()
    assert life.answer("again") == life.answer("lost")


@pytest.mark.faults
def test_timers_fire_once_though_another_clock_has_been_there(life):
    """A definition with another event time, and back: its watermarks say nothing of the timers of an earlier day."""
    life.redefine(replace(CARTS, source=[replace(SOURCE, event_time="seen")]))
    life.send(click("ian", "2026-01-06T00:01"), topic="clicks")
    life.epoch()
    life.redefine(CARTS)
    life.send(click("ian", "2026-01-06T00:02"), topic="clicks")
    life.epoch()
    engine = life.engine
    reprocess_epochs(engine.spark, life.pipeline, engine.layout, until=engine.writer.number)
    engine.catch_up()
    assert not engine.writer.behind
    carts = {(row["user"], row["window_start"].hour): row["n"] for row in life.answer("lost")}
    assert set(carts.values()) == {1}
    for view in life.pipeline.views:
        log = CommittedLog.pin(life.pipeline, engine.layout)
        assert recount_states(life.pipeline, view, engine.layout, log).findings == (), view.name


@pytest.mark.parametrize(
    "until",
    ["9999-12-31T23:59:59-12:00", pytest.param("0001-01-01T00:00:00+14:00", marks=pytest.mark.faults)],
)
def test_a_date_that_python_does_not_know_stops_nothing(scenario, spark, until):
    """It says that something never ends, west of UTC; the function is given None."""
    made = scenario(CARTS, spark=spark, now="2026-01-09")
    made.send({**click("ada", f"{DAY}T10:00"), "until": until}, topic="clicks")
    made.epoch()
    made.send({**click("ada", f"{DAY}T11:00"), "until": until}, topic="clicks")
    made.epoch()
    assert [row["n"] for row in made.answer("lost")] == [1]
    assert made.answer("raised") == []


@pytest.mark.faults
def test_a_view_that_is_behind_explains_what_a_build_changes(life, monkeypatch):
    """Nobody can say how many rows its missing slices would have changed: that is no alarm."""
    end_day(life)
    assert life.batch() == [f"{DAY}T00:00:00Z"]

    def fails(*_: object) -> None:
        raise ValueError("not today")

    life.send(click("ada", f"{DAY}T10:20", "7"), click("eve", f"{DAY}T12:00"), topic="clicks")
    with monkeypatch.context() as patched:
        patched.setattr(FoldedRows, "fold", fails)
        life.epoch()
    engine, pipeline = life.engine, life.pipeline
    assert {*engine.writer.behind} == {view.id for view in pipeline.views}
    day = pipeline.grid.named(f"{DAY}T00:00:00Z")
    plan = plan_run(pipeline, engine.layout, asked=None, dirty=True)
    assert [each.interval for each in plan.builds] == [day], "nothing but the rows says so"
    job = BuildJob(pipeline.name, "again", engine.writer.master.epoch, (day,))
    build_intervals(engine.spark, pipeline, engine.layout, job)
    found = compare_run(pipeline, engine.layout, "again")
    assert [each.alarm for each in found if each.alarm] == []
    assert {cause for each in found for cause in each.causes} == {ChangeCause.BEHIND.value}
