"""A state of a day in intervals of an hour: timers fire where no row is, and late rows change later hours."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc
import pytest
from tests.conformance.processes.test_emitted_numbers import CARTS, DAY, LOST, click, require_same_states

from seamline import Batch, ExpectRows, Tumbling, View, count
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.publish.planning import plan_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.protocol.audit import Wrong
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval, parse_moment
from seamline.serve.completeness import list_completeness
from seamline.serve.explain import explain_number

HOURLY = replace(CARTS, batch=Batch("1 hour", DAY))
ELEVEN = Interval(parse_moment(f"{DAY}T11:00"), parse_moment(f"{DAY}T12:00"))


def hour(*numbers: int) -> list[str]:
    """Return the ids of hours of the day."""
    return [f"{DAY}T{number:02d}:00:00Z" for number in numbers]


@pytest.fixture
def life(scenario, spark):
    """A cart that is left in an hour without rows, and one in the hour of the watermark."""
    made = scenario(HOURLY, spark=spark, now="2026-01-09")
    made.send(click("ada", f"{DAY}T10:50"), click("bob", f"{DAY}T10:10", "-3"), topic="clicks")
    made.epoch()
    made.send(click("eve", f"{DAY}T13:20", "5"), topic="clicks")
    made.epoch()
    return made


def planned(life) -> list[str]:
    """Return the ids of the hours that are dirty."""
    plan = plan_run(life.pipeline, life.engine.layout, asked=None, dirty=True)
    return [each.interval.id for each in plan.builds]


def lost(life, name: str = "lost") -> dict[tuple[str, int], tuple[object, bool]]:
    """Return by user and hour the total of the carts, and whether it is certified."""
    view = life.pipeline.view(name)
    found = read_merged_answer(life.pipeline, view, life.engine.layout, ReadRequest()).table.to_pylist()
    return {(row["user"], row["window_start"].hour): (row["amount"], row["certified"]) for row in found}


def require_sound(life) -> None:
    """Hold slices and generations against the rows that they are made of: all of them, and those of an hour."""
    for view in life.pipeline.views:
        for span in (None, ELEVEN):
            log = CommittedLog.pin(life.pipeline, life.engine.layout, *([span] if span else []))
            found = recount_states(life.pipeline, view, life.engine.layout, log)
            assert found.findings == (), (view.name, span)
        assert check_published_generations(life.pipeline, view, life.engine.layout)[1] == [], view.name


@pytest.mark.faults
def test_an_hour_without_rows_is_built_for_what_is_emitted_there(life):
    """Hours between rows and the watermark are built, those behind it wait; nothing is built twice."""
    assert lost(life) == {("bob", 10): (-3, False), ("ada", 11): (2, False)}
    assert life.batch() == hour(10, 11, 12)
    assert lost(life) == {("bob", 10): (-3, True), ("ada", 11): (2, True)}
    assert planned(life) == []
    require_sound(life)
    life.send(click("zoe", "2026-01-06T00:20"), topic="clicks")
    life.epoch()
    assert life.batch() == hour(*range(13, 24))
    assert {*lost(life)} == {("bob", 10), ("ada", 11), ("eve", 13)}
    assert all(certified for _, certified in lost(life).values())
    require_sound(life)


def test_a_late_row_changes_a_later_hour(life):
    """Its own hour has no emitted row: that of the timer is dirty, answered from slices, and built again."""
    life.batch()
    life.send(click("ada", f"{DAY}T10:55", "7"), topic="clicks")
    life.epoch()
    assert lost(life)["ada", 11] == (7, False)
    assert planned(life) == hour(11)
    require_sound(life)
    view, asked = life.pipeline.view("lost"), (parse_moment(f"{DAY}T11:00"), None)
    found = explain_number(
        life.pipeline, view, life.engine.layout, {"user": "ada", "kind": "abandoned"}, asked
    )
    assert found.proven, found.proofs
    assert life.batch() == hour(11)
    assert lost(life)["ada", 11] == (7, True)
    require_sound(life)


@pytest.mark.parametrize("after", [1, *(pytest.param(each, marks=pytest.mark.faults) for each in (-1, 0, 2))])
def test_a_catch_up_makes_what_the_stream_made(life, after):
    """Whole spans are folded, those of new rows and those that the watermark has gone over."""
    life.send(click("ada", f"{DAY}T10:55", "7"), topic="clicks")
    life.epoch()
    life.send(click("zoe", "2026-01-06T00:20"), topic="clicks")
    life.epoch()
    require_same_states(life, after)


@pytest.mark.faults
def test_a_version_that_is_born_in_a_span_is_built_up_to_the_watermark(life):
    """What was emitted before its birth is in no slice of it; what comes in later hours is."""
    life.redefine(replace(HOURLY, views=[*HOURLY.views, replace(LOST, name="again")]))
    life.send(click("ian", f"{DAY}T16:00", "9"), topic="clicks")
    life.epoch()
    assert lost(life)["eve", 13] == (5, False)
    assert lost(life, "again") == {}, "hour 13 was not over"
    life.send(click("zoe", f"{DAY}T17:20"), topic="clicks")
    life.epoch()
    assert lost(life, "again") == {("ian", 16): (9, False)}
    assert life.batch() == hour(10, 11, 12, 13, 14, 15, 16)
    assert lost(life, "again") == lost(life)
    assert lost(life)["ian", 16] == (9, True)
    require_sound(life)


def test_slices_of_an_hour_without_rows_are_counted_again(life):
    """A slice too many is found by an audit of all, and by one of the hour alone."""
    lost, layout = life.pipeline.view("lost"), life.engine.layout
    held = life.engine.writer.slices[lost.id]
    eleven = held.table.read()
    eleven = eleven.filter(pc.equal(eleven["user"], "ada")).drop_columns(["from_epoch", "to_epoch"])
    held.append(eleven, from_epoch=1, to_epoch=1)
    for span in (None, ELEVEN):
        log = CommittedLog.pin(life.pipeline, layout, *([span] if span else []))
        [found] = recount_states(life.pipeline, lost, layout, log).findings
        assert found.wrong is Wrong.SLICES


@pytest.mark.faults
def test_an_hour_that_is_built_again_leaves_the_others_sound(life):
    """Hours of one span have cuts of their own, and each counts rows of the earlier ones at its own."""
    life.batch()
    life.send(click("kim", f"{DAY}T10:05"), topic="clicks")
    life.epoch()
    assert life.batch() == hour(10)
    life.send(click("lee", f"{DAY}T10:06"), topic="clicks")
    life.epoch()
    life.send(click("mia", f"{DAY}T14:00"), topic="clicks")
    life.epoch()
    require_sound(life)
    cells = list_completeness(life.pipeline, life.engine.layout)
    found = {each.interval: each.status for each in cells if each.view == "lost"}
    assert found == dict(
        zip(hour(10, 11, 12, 13, 14), ["dirty", "certified", "certified", "open", "open"], strict=True)
    )
    assert planned(life) == hour(10)


def test_a_view_is_not_held_to_its_rows_where_none_were_read(scenario, spark):
    """Hours are built for what a state emits; other views have nothing there, and expect nothing."""
    clicks = View(
        "clicks",
        of="clicks",
        keys=["user"],
        window=Tumbling("1 hour"),
        measures={"n": count()},
        expect=[ExpectRows(at_least=1)],
    )
    definition = replace(HOURLY, views=[LOST, clicks])
    for made in (scenario(definition, now="2026-01-09"), scenario(definition, spark=spark, now="2026-01-09")):
        made.send(click("ada", f"{DAY}T10:50"), click("eve", f"{DAY}T13:20", "5"), topic="clicks")
        made.epoch()
        assert made.batch() == hour(10, 11, 12)
