"""A watermark is about the event times of one column: a definition that tells them by another begins anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.protocol.shipped import DAY, LANE, PIPELINE, START, Stream

from seamline import Batch, KafkaSource, Pipeline, Rule, Tumbling, View, count
from seamline.lake.publish.planning import plan_run
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.evolution import Timed
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.plan.stream.serving_refresh import list_changed_intervals
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.progress import Progress
from seamline.testing import Scenario

HOUR = timedelta(hours=1)


def dated(event_time: str) -> Pipeline:
    """Declare a count by day of one of two instants."""
    return Pipeline(
        name="shop",
        source=KafkaSource(
            topic="sales",
            schema="placed TIMESTAMP NOT NULL, due TIMESTAMP NOT NULL",
            event_time=event_time,
            max_future="30 days",
        ),
        views=[View("v", keys=[], window=Tumbling("1 day"), measures={"n": count()})],
        batch=Batch(interval="1 day", start="2024-01-01"),
    )


def cut_to(unit: str, *, rules: Sequence[Rule] = ()) -> CompiledPipeline:
    """Declare records whose event time is the start of a day, or an hour, of what they say."""
    source = replace(PIPELINE.definition.source, event_time="then")
    select = {"then": f"date_trunc('{unit}', at)"}
    return compile_pipeline(replace(PIPELINE.definition, source=source, select=select, rules=tuple(rules)))


def test_a_day_of_another_event_time_is_not_closed_by_the_old_one() -> None:
    """Numbers stayed right, for late rows count on top: it was the certificate that said too much."""
    shop = Scenario(dated("due"), now="2024-01-05T12:00")
    shop.send({"placed": "2024-01-05T11:00Z", "due": "2024-01-20T00:00Z"})
    shop.epoch()
    shop.redefine(dated("placed"))
    assert shop.batch() == [], "nobody has read by this column yet"
    shop.send({"placed": "2024-01-05T11:30Z", "due": "2024-01-20T00:00Z"})
    shop.epoch()
    assert shop.batch() == [], "it is noon of that day"
    shop.send({"placed": "2024-01-06T00:30Z", "due": "2024-01-20T00:00Z"})
    shop.epoch()
    assert shop.batch() == ["2024-01-05T00:00:00Z"]


def test_a_column_that_is_taken_up_again_goes_on_where_it_was() -> None:
    """What was read by it stays read."""
    shop = Scenario(dated("due"), now="2024-01-05T12:00")
    shop.send({"placed": "2024-01-05T11:00Z", "due": "2024-01-20T00:00Z"})
    reached = shop.epoch().watermark
    shop.redefine(dated("placed"))
    shop.send({"placed": "2024-01-05T11:30Z", "due": "2024-01-10T00:00Z"})
    between = shop.epoch().watermark
    shop.redefine(dated("due"))
    shop.send({"placed": "2024-01-05T11:40Z", "due": "2024-01-10T00:00Z"})
    assert between is not None and reached is not None and between < reached == shop.epoch().watermark


def test_another_rule_keeps_the_watermark() -> None:
    """A topic in which nothing comes any more would never close again."""
    shop = Scenario(dated("placed"), now="2024-01-05T12:00")
    shop.send({"placed": "2024-01-07T11:00Z", "due": "2024-01-20T00:00Z"})
    reached = shop.epoch().watermark
    shop.redefine(replace(dated("placed"), rules=[Rule("due", "due > placed")]))
    assert shop.wait("1 hour").watermark == reached


@pytest.mark.parametrize("rejudged", [False, True])
def test_no_plan_goes_by_the_watermark_of_another_column(tmp_path: Path, *, rejudged: bool) -> None:
    """A definition was edited, and a run came before the stream's next epoch."""
    old, new = cut_to("hour"), cut_to("day", rules=[Rule("all", "id >= 0")] if rejudged else ())
    stream = Stream(tmp_path, pipeline=old, topic=[0])
    stream.epoch(stream.start(), watermark=START + 19 * DAY)
    stream.pipeline = new
    writer = stream.start()
    plans = [plan_run(each, stream.layout, asked=None, dirty=True) for each in (old, new)]
    assert [plan.watermark for plan in plans] == [START + 19 * DAY, None]
    stream.produce(0)
    stream.epoch(writer, watermark=START + HOUR)
    plans = [plan_run(each, stream.layout, asked=None, dirty=True) for each in (old, new)]
    assert [plan.watermark for plan in plans] == [None, START + HOUR]


def test_no_window_is_complete_by_the_watermark_of_another_column(tmp_path: Path) -> None:
    """Nor are rows late by it that came before the column was there."""
    old, new = cut_to("hour"), cut_to("day")
    stream = Stream(tmp_path, pipeline=new, topic=[0])
    stream.epoch(stream.start(), watermark=START + 2 * DAY)
    assert told(new, stream) == [(True, "complete")]
    stream.pipeline = old
    stream.produce(0)
    stream.epoch(stream.start(), watermark=START + 25 * DAY)
    assert told(new, stream) == [(False, "early")]
    stream.pipeline = new
    stream.produce(1)
    stream.epoch(stream.start(), watermark=START + 2 * DAY)
    assert told(new, stream, as_of=0) == [(True, "complete")]
    assert told(old, stream, as_of=0) == []


def test_a_past_is_told_by_the_edges_of_the_clock_that_ran_then(tmp_path: Path) -> None:
    """The column was taken up again: edges of the first time were left out, a late row was told as one in time."""
    old, new = cut_to("hour"), cut_to("day")
    stream = Stream(tmp_path, pipeline=new, topic=[0])
    writer = stream.start()
    stream.epoch(writer, watermark=START + 2 * DAY)
    stream.produce(0)
    stream.epoch(writer, watermark=START + 2 * DAY)
    assert told(new, stream, id=1) == [(True, "late")]
    for pipeline in (old, new):
        stream.pipeline = pipeline
        stream.produce(0)
        stream.epoch(stream.start(), watermark=START + 2 * DAY)
    assert told(new, stream, id=1, as_of=1) == [(True, "late")]
    assert told(old, stream, id=1, as_of=1) == []
    assert told(new, stream, id=1, as_of=3) == told(new, stream, id=1) == [(True, "late")], "its own run knew"


def told(pipeline: CompiledPipeline, stream: Stream, *, id: int = 0, **asked: Any) -> list[tuple[bool, str]]:
    """Ask for whether the windows of a key are complete."""
    REMEMBERED.answers.clear()
    [view] = pipeline.views
    rows = read_merged_answer(
        pipeline, view, stream.layout, ReadRequest(side=Side.SPEED, version=view.fingerprint, **asked)
    ).table
    return [(row["complete"], row["phase"]) for row in rows.to_pylist() if row["id"] == id]


def epoch(number: int, clock: str, *, version: str = "v", day: int = 0) -> Epoch:
    """An epoch whose watermark is at a day."""
    at = START + day * DAY
    return Epoch(number, 1, START, version, clock=clock, watermark=at, max_event_time={LANE: at})


def test_rows_of_before_clocks_were_kept_go_by_their_record_version() -> None:
    """An upgrade closes nothing and opens nothing."""
    rows = [epoch(0, "", version="v", day=9), epoch(1, "", version="w", day=3)]
    for version, day in (("v", 9), ("w", 3), ("w+more STRING", 3)):
        assert Progress.resume(rows, {}, START, Timed(version, "at")).mark == START + day * DAY
    assert Progress.resume(rows, {}, START, Timed("x", "at")).mark is None
    said = [*rows, epoch(2, "at", version="w", day=4)]
    assert Progress.resume(said, {}, START, Timed("x", "at")).mark == START + 4 * DAY
    assert Progress.resume(said, {}, START, Timed("v", "due")).largest == {LANE: START + 9 * DAY}


def test_a_clock_is_a_column_and_what_makes_it() -> None:
    """Steps that do not make it leave it as it is."""
    assert cut_to("day").clock == cut_to("day", rules=[Rule("all", "id >= 0")]).clock
    assert cut_to("day").clock != cut_to("hour").clock
    assert PIPELINE.clock == "at"
    more = replace(PIPELINE.definition, select={"twice": "id * 2"})
    assert compile_pipeline(more).clock == "at"


def test_a_topic_that_ends_closes_by_another_column_too() -> None:
    """Nothing comes that would tell event times by it: the log knows which days have rows."""
    grid = PIPELINE.grid
    made: Any = SimpleNamespace(
        progress=Progress({LANE: 3}),
        pipeline=PIPELINE,
        writer=SimpleNamespace(find_last_filled=lambda _: grid.of(START + 3 * DAY).id),
    )
    assert Epochs.find_closing_watermark(made) == START + 4 * DAY
    made.writer.find_last_filled = lambda _: ""
    assert Epochs.find_closing_watermark(made) is None
    made.progress = Progress({LANE: 3}, {LANE: START})
    assert Epochs.find_closing_watermark(made) == START + DAY


def test_a_serving_table_is_shown_anew_by_another_column() -> None:
    """Every one of its rows says whether it is complete."""
    [view] = PIPELINE.views
    rows = [epoch(0, "due", day=9), epoch(1, "placed", day=10)]
    assert list_changed_intervals(rows, 0, PIPELINE.grid, view, timedelta(0)) is None
    assert (
        list_changed_intervals([rows[0], replace(rows[1], clock="due")], 0, PIPELINE.grid, view, timedelta(0))
        is not None
    )
