"""A view is edited while it runs: both versions answer right, and flipping there and back loses nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_seam import DAYS, START, World, build, expected, published
from tests.conformance.test_seam import PIPELINE as SHOP

from seamline.lake.log.master import Master
from seamline.lake.publish.flipping import flip_view
from seamline.lake.publish.planning import plan_run
from seamline.lake.read import merged_read, serving_table
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_pipeline
from seamline.model.definition.pipeline import View
from seamline.model.definition.windows import Tumbling
from seamline.model.errors import PublishRefused
from seamline.model.measures import count, min, sum
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side, Status
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND
from seamline.serve.explain import explain_number

PIPELINE = compile_pipeline(replace(SHOP.definition, views=SHOP.definition.views[:2]))
OLD = PIPELINE.definition.views[0]
NEW = View(
    OLD.name,
    keys=["customer"],
    window=Tumbling("1 day"),
    measures={"orders": count(), "least": min("amount"), "spent": sum("amount * 2")},
    where="amount > 1",
)
EDITED = compile_pipeline(replace(PIPELINE.definition, views=[NEW, *PIPELINE.definition.views[1:]]))
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def rows_of(table: Any, view: View) -> Rows:
    return {
        tuple(row[name] for name in (*view.keys, "window_start")): tuple(row[name] for name in view.measures)
        for row in table.to_pylist()
    }


def answered(
    world: World, pipeline: CompiledPipeline, view: View, *, version: str = "", side: Side = Side.MERGED
) -> Rows:
    """Ask by a definition; the columns must be those of ``view``."""
    compiled = pipeline.view(view.name)
    assert compiled is not None
    return rows_of(
        merged_read.read_merged_answer(
            pipeline, compiled, world.layout, ReadRequest(version=version, side=side)
        ).table,
        view,
    )


def oracle(world: World, compiled: CompiledView, view: View, side: Side = Side.MERGED) -> Rows:
    """Answer from the list of rows; the new version selects and doubles."""
    cuts = {each.interval: each.epoch for each in published(world.layout) if each.view == compiled.id}
    rows, kept = world.rows, world.rows
    if view is NEW:
        # Duplicates fall to the first of an id, selected or not: an id's copies are not alike here.
        first = {row.id: row for row in sorted(rows, key=order, reverse=True)}
        kept = [row for row in rows if row.epoch > cuts.get(row.interval, -1) or first[row.id] is row]
        kept = [replace(row, amount=row.amount * 2) for row in kept if row.amount and row.amount > 1]
    world.rows = kept
    try:
        windows = expected(world, compiled, cuts, Master.open(world.layout).epoch, side)
    finally:
        world.rows = rows
    found = {(*key[1:-2], EPOCH + key[-2] * MICROSECOND): values for key, values in windows.items()}
    if view is NEW:
        at = list(NEW.measures).index("least")
        found = {
            key: tuple(value // 2 if number == at else value for number, value in enumerate(values))
            for key, values in found.items()
        }
    return found


def order(row: Any) -> tuple[int, int, int]:
    return row.epoch, row.lane, row.offset


def run(world: World, epochs: int) -> None:
    for _ in range(epochs):
        world.produce()
        world.epoch()


def build_all(world: World) -> None:
    """Build every interval to an edge, as a run over the dirty ones does."""
    while Master.open(world.layout).edge < Master.open(world.layout).epoch:
        run(world, 1)
    plan = plan_run(world.pipeline, world.layout, asked=None, dirty=True)
    if plan.builds:
        build(world.pipeline, world.layout, [each.interval for each in plan.builds], plan.cut)


def check_all(world: World, served: View) -> None:
    """Hold every side of both versions, and the serving table, to the list."""
    for pipeline, view in ((PIPELINE, OLD), (EDITED, NEW)):
        compiled = pipeline.view(view.name)
        assert compiled is not None
        for side in Side:
            found = answered(world, EDITED, view, version=compiled.fingerprint, side=side)
            if not (side is Side.SPEED and view is NEW):
                assert found == oracle(world, compiled, view, side), (compiled.fingerprint, side)
        if view is served:
            for asked in (PIPELINE, EDITED):
                assert answered(world, asked, view) == oracle(world, compiled, view)
            days = [world.pipeline.grid.of(START).id]
            serving_table.refresh_serving_table(EDITED, world.layout, compiled, days)
            table = Table.open(world.layout.serving(compiled)).read()
            start = [row for row in table.to_pylist() if row["interval"] in days]
            own = {
                key: value
                for key, value in oracle(world, compiled, view).items()
                if key[-1] < START.replace(day=2)
            }
            assert {
                tuple(row[name] for name in (*view.keys, "window_start")): tuple(
                    row[name] for name in view.measures
                )
                for row in start
            } == own


def serving_version(world: World) -> str:
    return ManifestTable.ensure(world.layout).read().serving[OLD.name].partition("/")[2]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.faults)])
def test_an_edited_view_is_flipped_to_and_back(tmp_path: Path, seed: int) -> None:
    """Editing a definition may neither stop an answer nor change one before somebody flips."""
    world = World(tmp_path, seed, PIPELINE)
    old, new = PIPELINE.views[0], EDITED.views[0]
    run(world, 6)
    build_all(world)
    run(world, 2)
    # The file is edited, nothing has been started: the old version answers by its stored definition.
    assert answered(world, EDITED, OLD) == oracle(world, old, OLD)
    with pytest.raises(PublishRefused, match="never born"):
        flip_view(EDITED, world.layout, OLD.name)

    world.pipeline = EDITED
    world.restart()
    born = ManifestTable.ensure(world.layout).read().births[new.id]
    assert born == Master.open(world.layout).epoch + 1
    run(world, 3)
    assert world.writer.frontiers[old.id] == world.writer.frontiers[new.id] == Master.open(world.layout).epoch
    assert answered(world, EDITED, OLD) == oracle(world, old, OLD)
    with pytest.raises(PublishRefused, match="not built to its floor"):
        flip_view(EDITED, world.layout, OLD.name)

    build_all(world)
    world.clean()
    run(world, 2)
    check_all(world, OLD)
    assert [each.view for each in flip_view(EDITED, world.layout, OLD.name)] == [new.id]
    assert flip_view(EDITED, world.layout, OLD.name) == []
    check_all(world, NEW)
    table = Table.open(world.layout.serving(new))
    assert "least" in table.read().column_names
    assert rows_of(table.read(), NEW) == oracle(world, new, NEW)
    row = next(iter(answered(world, EDITED, NEW)))
    if row[0] is not None:
        assert explain_number(EDITED, new, world.layout, {"customer": row[0]}, (row[1], None)).proven

    world.restart()
    run(world, 3)
    check_all(world, NEW)
    flip_view(EDITED, world.layout, OLD.name, to=old.fingerprint[:6])
    assert serving_version(world) == old.fingerprint
    check_all(world, OLD)
    assert rows_of(Table.open(world.layout.serving(old)).read(), OLD) == oracle(world, old, OLD)
    build_all(world)
    flip_view(EDITED, world.layout, OLD.name)
    check_all(world, NEW)
    assert len({each.interval for each in world.rows}) == DAYS


def test_days_that_begin_after_a_birth_need_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running stream always has an open interval: waiting for its build, a flip would wait for ever."""
    world = World(tmp_path, 5, PIPELINE)
    run(world, 4)
    world.pipeline = EDITED
    world.restart()
    run(world, 1)
    build_all(world)
    world.ids += 1
    monkeypatch.setattr(sys.modules[World.__module__], "DAYS", 2 * DAYS)
    run(world, 6)
    later = {row.interval for row in world.rows if row.at >= START + timedelta(days=DAYS)}
    assert later
    flip_view(EDITED, world.layout, OLD.name)
    new = EDITED.views[0]
    found = merged_read.read_merged_answer(EDITED, new, world.layout)
    assert rows_of(found.table, NEW) == oracle(world, new, NEW)
    assert later <= {id for id, each in found.intervals.items() if each.status is Status.OPEN}
    check_all(world, NEW)


def test_a_version_that_lags_is_not_flipped_to(tmp_path: Path) -> None:
    """Answers would go back in time (C5)."""
    world = World(tmp_path, 3, PIPELINE)
    run(world, 3)
    build_all(world)
    world.pipeline = EDITED
    world.restart()
    run(world, 1)
    build_all(world)
    world.writer.frontiers[EDITED.views[0].id] -= 1
    run(world, 1)
    with pytest.raises(PublishRefused, match="answers would go back"):
        flip_view(EDITED, world.layout, OLD.name)
