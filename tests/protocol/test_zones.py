"""A tzdata that cuts windows finer than days were read: nothing is answered from panes that are too long for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.shipped import DAY, PIPELINE, START, Stream

from seamline import Tumbling, View, count
from seamline.lake.publish.planning import plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.stored_panes import PANE, use_stored_panes
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition import windows
from seamline.model.errors import ProtocolError
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import EPOCH
from seamline.model.time.window_arithmetic import FIRST, LAST, Ruling
from seamline.model.time.zone_clock import ALWAYS, MICROSECOND, Clock

HOUR = 3_600_000_000


def tokyo(*changes: tuple[float, int]) -> CompiledPipeline:
    """Declare a count by day of Tokyo, whose clocks go to so many hours ahead of UTC at some day after START."""
    view = View("by_day", keys=[], window=Tumbling("1 day", zone="Asia/Tokyo"), measures={"n": count()})
    since = [(START + day * DAY - EPOCH) // MICROSECOND for day, _ in changes]
    clock = Clock((ALWAYS, *since), (9 * HOUR, *(ahead * HOUR for _, ahead in changes)))
    with patch.object(windows, "clock_of", lambda *_: clock):
        return compile_pipeline(replace(PIPELINE.definition, views=(view,)))


OLD, NEW, COMING = tokyo(), tokyo((0, 10)), tokyo((30, 10))
TIMES = [13.5 / 24, 14.5 / 24, 15.5 / 24]
"""Days after START: between the second and the third a day ends by the clocks of before, before them one by NEW."""


def told(pipeline: CompiledPipeline, stream: Stream, **asked: Any) -> list[tuple[Any, int]]:
    """Ask for the days and their counts."""
    REMEMBERED.answers.clear()
    rows = read_merged_answer(
        pipeline, pipeline.views[0], stream.layout, ReadRequest(**asked)
    ).table.to_pylist()
    return [(row["window_start"], row["n"]) for row in rows]


def statuses(pipeline: CompiledPipeline, stream: Stream) -> set[Status]:
    """Ask how intervals are answered."""
    REMEMBERED.answers.clear()
    return {
        each.status
        for each in read_merged_answer(pipeline, pipeline.views[0], stream.layout).intervals.values()
    }


def read(home: Path, pipeline: CompiledPipeline) -> Stream:
    """Read the first records."""
    stream = Stream(home, pipeline=pipeline, topic=[*TIMES])  # type: ignore[list-item]
    stream.epoch(stream.start(), watermark=START + 9 * DAY)
    return stream


def test_panes_that_a_newer_tzdata_makes_finer_are_made_anew(tmp_path: Path) -> None:
    """A zone gets summer time for a day that has been read: hours of its day are in a stored pane of three."""
    stream, fresh = read(tmp_path / "before", OLD), read(tmp_path / "anew", NEW)
    assert sum(n for _, n in told(OLD, stream)) == 3
    with pytest.raises(ProtocolError, match="stored in panes of 3:00:00, but its time zone"):
        told(NEW, stream)
    stream.pipeline = NEW
    writer = stream.start()
    assert (told(NEW, stream), statuses(NEW, stream)) == ([], {Status.BUILDING})
    for each in (stream, fresh):
        each.produce(0.6, 1.6)  # type: ignore[arg-type]
    stream.epoch(writer, watermark=START + 9 * DAY)
    fresh.epoch(fresh.start(), watermark=START + 9 * DAY)
    plan = plan_run(NEW, stream.layout, asked=None, dirty=True)
    assert [each.interval.start for each in plan.builds] == [START, START + DAY]
    stream.build(0, 1, "g", NEW.views[0])
    publish_run(NEW, stream.layout, "g")
    assert told(NEW, stream) == told(fresh.pipeline, fresh)
    assert sum(n for _, n in told(NEW, stream)) == 5


def test_a_generation_of_longer_panes_is_withdrawn(tmp_path: Path) -> None:
    """It was served for a day that its panes cannot be cut into any more."""
    stream = read(tmp_path, OLD)
    stream.build(0, 0, "coarse", OLD.views[0])
    publish_run(OLD, stream.layout, "coarse")
    with pytest.raises(ProtocolError, match="finer ones from 2024-01-01"):
        told(NEW, stream)
    stream.pipeline = NEW
    stream.start()
    assert statuses(NEW, stream) == {Status.BUILDING}
    stream.start()
    assert statuses(NEW, stream) == {Status.BUILDING}


def test_a_change_that_is_to_come_touches_nothing_that_was_read(tmp_path: Path) -> None:
    """Laws change often, and mostly they are known before."""
    stream = read(tmp_path, OLD)
    before = told(OLD, stream)
    assert told(COMING, stream) == before
    stream.pipeline = COMING
    writer = stream.start()
    assert told(COMING, stream) == before
    assert writer.slices[COMING.views[0].id].table.txn(PANE) == HOUR


def test_an_older_tzdata_cuts_no_longer_panes_than_there_are(tmp_path: Path) -> None:
    """A host that was not brought up to date would take the finer ones away again."""
    stream = read(tmp_path, NEW)
    assert [view.pane for view in add_live_versions(OLD, stream.layout).views] == [timedelta(hours=1)]
    stream.pipeline = OLD
    writer = stream.start()
    assert [view.pane for view in writer.pipeline.views] == [timedelta(hours=1)]
    assert writer.slices[OLD.views[0].id].table.txn(PANE) == HOUR
    assert use_stored_panes(OLD, lambda _: None) == OLD


def test_slices_that_say_nothing_of_their_panes_are_believed(tmp_path: Path) -> None:
    """Those of earlier releases; the next start says it."""
    with (
        patch("seamline.lake.tables.slices.pane_length_mark", lambda _: {}),
        patch("seamline.spark.stream.pane_refining.commit_pane_length"),
    ):
        stream = read(tmp_path, OLD)
    assert sum(n for _, n in told(OLD, stream)) == 3
    writer = stream.start()
    assert writer.slices[OLD.views[0].id].table.txn(PANE) == 3 * HOUR


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(-12, 12)), max_size=3, unique_by=lambda it: it[0]),
    st.sampled_from([1, 2, 3, 4, 6, 12]),
    st.sampled_from([24, 48]),
)
def test_borders_are_on_panes_but_where_it_is_said(
    changes: list[tuple[int, int]], pane: int, size: int
) -> None:
    """Whatever the clocks do, in hours."""
    ordered = sorted(changes)
    ruling = Ruling(
        size, size, size, 0, Clock((ALWAYS, *(at for at, _ in ordered)), (0, *(a for _, a in ordered)))
    )
    stretches = ruling.within(pane)
    for number in range(-5, 25):
        for border in (ruling.at(number), *ruling.ends(number)):
            assert border % pane == 0 or any(low <= border < high for low, high in stretches)
    assert ruling.within(1) == []
    assert Ruling(size, size, size, 1, ruling.clock).within(2) == [(FIRST, LAST)]
