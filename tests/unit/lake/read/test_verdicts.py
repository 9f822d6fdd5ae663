"""How far windows are right, all at once: held to one at a time, and to work that does not grow with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.engine.windowing import window_states_schema
from seamline.lake.log.log_edges import Edges, Marks
from seamline.lake.read.answer_ways import format_interval_id
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.presentation import Answer
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.read.standings import find_interval_ways
from seamline.lake.read.window_verdicts import compute_verdicts, find_run_minimums
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.manifest import Act, Manifest, Statement
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side, Status
from seamline.model.time.intervals import EPOCH
from seamline.serve.query import format_answer_footer

COMPILED = sales_pipeline()
VIEW = COMPILED.views[0]
MICROS = 86_400_000_000
FIRST = (START - EPOCH).days
SURE = (Status.CERTIFIED, Status.DIRTY, Status.HELD)


def day(number: int) -> str:
    return format_interval_id((FIRST + number) * MICROS)


EDGES = Marks((2, 5, 9), tuple((FIRST + at) * MICROS for at in (1, 4, 6)), (START,) * 3)


def pinned(manifest: Manifest, until: int, watermark: datetime | None = None) -> Snapshot:
    return Snapshot(
        view=VIEW,
        grid=COMPILED.grid,
        has_event_id=True,
        dedup_within="",
        epoch=until,
        until=until,
        as_of=False,
        watermark=watermark,
        edges=Edges(later=EDGES, last=9),
        held=EpochNumbers((0,), (20,)),
        slices=None,
        manifest=manifest,
        generations=None,
        restated=(),
    )


def dull(snapshot: Snapshot, number: int, side: Side) -> tuple[int, bool] | None:
    """Judge one interval by the rules: the epoch it is right up to and whether it is certified; None if it builds."""
    id, manifest = day(number), snapshot.manifest
    floor = manifest.floor(VIEW.id, id)
    made = None if side is Side.SPEED else manifest.published.get((VIEW.id, id))
    reaches = made is not None and (made.epoch >= floor or made.epoch >= snapshot.until)
    if side is not Side.SPEED and floor > -1 and not reaches:
        return None
    cut = made.epoch if made else floor
    return cut if side is Side.BATCH else max(cut, snapshot.until), manifest.standing(
        made, news=False
    ) in SURE


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Draw what a manifest may tell of a dozen days."""
    days = st.integers(0, 11)
    published = {
        (VIEW.id, day(at)): Statement(
            Act.PUBLISH, VIEW.id, draw(st.integers(0, 12)), day(at), "g", certified=draw(st.booleans())
        )
        for at in draw(st.sets(days))
    }
    floors = {(VIEW.id, day(at)): draw(st.integers(-1, 12)) for at in draw(st.sets(days))}
    filled = {VIEW.id: day(draw(days))} if draw(st.booleans()) else {}
    history = {place: (each,) for place, each in published.items()}
    births = {VIEW.id: draw(st.integers(0, 6))}
    return Manifest(3, births, filled, published=published, history=history, floors=floors)


@given(
    manifests(),
    st.sets(st.integers(0, 11)),
    st.lists(st.tuples(st.integers(0, 12 * 24 - 1), st.integers(1, 6 * 24)), min_size=1, max_size=20),
    st.sampled_from(Side),
    st.integers(0, 12),
)
@settings(deadline=None)
def test_all_windows_at_once_are_judged_as_one_by_one(
    manifest: Manifest, there: set[int], windows: list[tuple[int, int]], side: Side, until: int
) -> None:
    """A window is right as far as the worst of its intervals, those without rows or a publication among them."""
    snapshot = pinned(manifest, until)
    starts = np.array(sorted(FIRST + at for at in there), np.int64) * MICROS
    ways = find_interval_ways(snapshot, starts, np.zeros(len(starts), np.int64), side)
    hour = MICROS // 24
    bounds = [(FIRST * MICROS + at * hour, FIRST * MICROS + (at + size) * hour) for at, size in windows]
    found = window_states_schema(VIEW).empty_table()
    columns = {name: pa.array([0] * len(bounds), pa.int64()) for name in ("_speed", "_newest", "rows")}
    columns |= {
        "_start": pa.array([low for low, _ in bounds]),
        "_end": pa.array([high for _, high in bounds]),
    }
    found = pa.table(
        {field.name: columns.get(field.name, pa.nulls(len(bounds), field.type)) for field in found.schema}
    )
    verdicts = compute_verdicts(snapshot, ways, found, side)
    for place, (low, high) in enumerate(bounds):
        numbers = range(low // MICROS - FIRST, (high - 1) // MICROS - FIRST + 1)
        known = [dull(snapshot, number, side) for number in numbers]
        assert bool(verdicts.answered[place]) == (None not in known)
        if known := [each for each in known if each is not None] if None not in known else []:
            assert verdicts.epochs[place] == min(epoch for epoch, _ in known)
            assert verdicts.certified[place] == all(sure for _, sure in known)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.data())
def test_the_least_of_any_run(values: list[int], data: st.DataObject) -> None:
    """Two runs that are as long as a power of two cover any other."""
    bounds = data.draw(
        st.lists(st.tuples(st.integers(0, len(values)), st.integers(0, len(values))).map(sorted), min_size=1)
    )
    low, high = np.array(bounds, np.int64).T
    found = find_run_minimums(np.array(values, np.int64), low, high).tolist()
    assert found == [min(values[a:b], default=2**62) for a, b in bounds]


def calls(make: Callable[[], object]) -> int:
    """Count the calls of Python functions that something makes."""
    seen = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal seen
        seen += event == "call"

    sys.setprofile(count)
    try:
        make()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("window", ["1 hour", "1 day"])
def test_an_answer_does_no_work_in_python_for_each_window(tmp_path: Path, window: str) -> None:
    """A million windows are answered by columns: what is called for each of them costs minutes."""

    def told(hours: int) -> tuple[int, Answer]:
        shop = Shop(tmp_path / f"{hours}", sales_pipeline(window))
        shop.epoch([Sale(60 * hour) for hour in range(hours)], watermark=START + DAY)

        def ask() -> Answer:
            return read_merged_answer(
                shop.compiled, shop.view, shop.layout, ReadRequest(end=START + timedelta(days=9999))
            )

        found = ask()
        format_answer_footer(found)

        def again() -> None:
            format_answer_footer(
                read_merged_answer(
                    shop.compiled, shop.view, shop.layout, ReadRequest(end=START + timedelta(days=9998))
                )
            )

        return calls(again), found

    (few, short), (many, long) = told(200), told(2000)
    assert long.table.num_rows >= 9 * short.table.num_rows
    assert many <= few + 20


def test_columns_of_intervals_are_a_mapping_by_id() -> None:
    """What reads an answer's intervals by id, in their order, goes on to do so."""
    held = Statement(Act.PUBLISH, VIEW.id, 7, day(1), "g", certified=True)
    manifest = Manifest(
        published={(VIEW.id, day(1)): held}, history={(VIEW.id, day(1)): (held,)}, births={VIEW.id: 0}
    )
    starts = np.array([FIRST, FIRST + 1, FIRST + 3], np.int64) * MICROS
    ways = find_interval_ways(pinned(manifest, 9), starts, np.array([4, 0, 2]), Side.MERGED)
    assert [*ways] == [day(0), day(1), day(3)]
    assert ways[day(1)].generation == "g" and ways[day(1)].status is Status.CERTIFIED
    assert ways[day(0)] == replace(ways[day(3)], rows_since=4)
    assert day(2) not in ways and "yesterday" not in ways
    assert ways.runs(Status.OPEN) == [(day(0), day(0)), (day(3), day(3))]
    assert ways.tally() == {Status.CERTIFIED: 1, Status.OPEN: 2}


def test_a_row_is_late_by_the_last_edge_before_its_newest_epoch() -> None:
    """Edges 2, 5, 9 saw the watermark at the ends of days 0, 3 and 5: epoch 5 closed day 1, so only 6 is late."""
    edges = pinned(Manifest(), 9).edges
    assert [edges.mark_before(each) for each in (0, 2, 3, 5, 6, 10)] == [
        None, None, *((FIRST + at) * MICROS for at in (1, 1, 4, 6)),
    ]  # fmt: skip
    assert datetime(2013, 1, 1, tzinfo=UTC) == START
