"""A preview is what a build then publishes: of rows, of records validated again, of joins and of processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.conformance.joins.test_joined_numbers import DAY, clicked, shown
from tests.conformance.joins.test_joined_numbers import PIPELINE as ADS
from tests.conformance.processes.test_emitted_numbers import CARTS, click
from tests.unit.records import pipeline

from seamline import Rule, Tumbling, View, avg, count, sum
from seamline.lake.publish.planning import plan_run
from seamline.lake.read.row_differences import compare_rows, generation_rows
from seamline.lake.tables.manifest_table import manifest_of
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.plan.revision.preview import IntervalPreview, ViewPreview
from seamline.serve.generation_differences import list_common_measures, places_of
from seamline.serve.previews.interval_preview import summarize_interval
from seamline.serve.previews.planned_previews import preview_plan
from seamline.serve.previews.view_preview import Wanted, preview_view
from seamline.testing import Scenario
from seamline.testing.tables import Tables

Generations = Mapping[str, str]
"""By interval id."""


def published_of(engine: Tables, view: CompiledView) -> Generations:
    """Return what is published of a version."""
    published = manifest_of(engine.layout).published
    return {interval: each.generation for (id, interval), each in published.items() if id == view.id}


def happened(
    engine: Tables, old: CompiledView, before: Generations, new: CompiledView
) -> dict[str, IntervalPreview]:
    """Compare what was published of a version with what is published of another, interval by interval."""
    found = {}
    for interval, generation in published_of(engine, new).items():
        if interval in before and before[interval] != generation:
            sides = [
                generation_rows(engine.layout, view, engine.pipeline.grid.named(interval), each)
                for view, each in ((old, before[interval]), (new, generation))
            ]
            difference = compare_rows(*sides, places_of(old, new), list_common_measures(old, new))
            found[interval] = summarize_interval(difference, interval, 0, examples=True)
    return found


def told(found: ViewPreview) -> dict[str, IntervalPreview]:
    """Return what a preview says of each interval."""
    assert not found.why and not found.skipped
    return {each.interval: replace(each, cut=0) for each in found.intervals}


def test_records_that_are_validated_again(scenario: Callable[..., Scenario], spark: Any) -> None:
    """Rows change, are refused, and come from the quarantine; the preview said so before the build."""
    by_shop = View(
        "by_shop",
        keys=["shop"],
        window=Tumbling("1 hour"),
        measures={"n": count(), "paid": sum("cents"), "mean": avg("cents")},
    )
    wrong = pipeline(
        "id INT NOT NULL, shop STRING, amount INT, at TIMESTAMP",
        event_id=["id"],
        select={"cents": "amount * 10"},
        rules=[Rule("no refund", "amount > 0")],
        where="shop <> 'b'",
        views=[by_shop],
    )
    mended = replace(wrong, select={"cents": "amount * 100"}, rules=[Rule("known", "shop <> 'z'")], where="")
    shop = scenario(wrong, spark=spark, now="2024-01-20")
    rows = [(1, "a", 5), (2, "b", 7), (3, "a", -2), (4, "z", 4), (1, "a", 5), (5, "c", 0)]
    for day in (1, 2):
        values = [
            {"id": id, "shop": name, "amount": amount, "at": f"2024-01-0{day}T10:0{id}:00Z"}
            for id, name, amount in rows
        ]
        shop.send(*values, b"{", at="2024-01-10T00:00:00Z")
        shop.epoch()
    shop.send({"id": 9, "shop": "q", "amount": 1, "at": "2024-01-15T10:00:00Z"}, at="2024-01-16T00:00:00Z")
    shop.epoch()
    assert len(shop.batch()) == 2
    engine = shop.engine
    assert isinstance(engine, Tables)
    [old] = engine.pipeline.views
    before, edited = published_of(engine, old), compile_pipeline(mended)
    found = preview_view(edited, edited.views[0], engine.layout, Wanted(10))
    assert (found.changed, found.gone, found.new) == (2, 2, 4)
    shop.redefine(mended)
    shop.wait("1 hour")
    shop.batch()
    assert told(found) == happened(engine, old, before, engine.pipeline.views[0])


def check_late_rows(life: Scenario, late: Callable[[], None]) -> list[ViewPreview]:
    """Compare the previews of rows that came late with what their build then changes; return the previews."""
    engine = life.engine
    assert isinstance(engine, Tables)
    for view in engine.pipeline.views:
        same = preview_view(engine.pipeline, view, engine.layout, Wanted(10))
        assert same.why or not same.differs, view.id
    before = {view.id: published_of(engine, view) for view in engine.pipeline.views}
    late()
    plan = plan_run(engine.pipeline, engine.layout, asked=None, dirty=True)
    found = preview_plan(engine.pipeline, engine.layout, plan, sample=10, examples=True)
    life.batch()
    for each in found:
        view = next(one for one in engine.pipeline.views if one.id == each.after)
        assert told(each) == happened(engine, view, before[view.id], view)
    return [*found]


def test_late_rows_of_a_join(scenario: Callable[..., Scenario], spark: Any) -> None:
    """A click that comes late finds its impression, of the day before too."""
    life = scenario(ADS, spark=spark, now="2026-01-09")
    life.send(
        shown("a", f"{DAY}T10:00"), shown("b", f"{DAY}T23:40"), shown("c", f"{DAY}T10:20"), topic="shown"
    )
    life.send(clicked("a", f"{DAY}T10:30"), topic="clicked")
    life.epoch()
    for name in ("clicked", "shown"):
        life.send({"ad": "end", "at": "2026-01-06T03:00:00Z"}, topic=name)
    life.epoch()
    assert life.batch() == [f"{DAY}T00:00:00Z"]

    def late() -> None:
        life.send(clicked("c", f"{DAY}T10:25", 7), clicked("b", "2026-01-06T00:20"), topic="clicked")
        life.epoch()

    [found] = check_late_rows(life, late)
    assert found.changed == 2


def test_late_rows_of_a_process(scenario: Callable[..., Scenario], spark: Any) -> None:
    """What a function emits may change for rows that were there: all of a span is folded again."""
    life = scenario(CARTS, spark=spark, now="2026-01-09")
    life.send(click("ann", f"{DAY}T10:00"), click("bob", f"{DAY}T11:00", "5"), topic="clicks")
    life.epoch()
    life.send(click("end", "2026-01-07T03:00"), topic="clicks")
    life.epoch()
    assert f"{DAY}T00:00:00Z" in life.batch()

    def late() -> None:
        life.send(click("ann", f"{DAY}T10:10", "7"), topic="clicks")
        life.epoch()

    assert any(each.differs for each in check_late_rows(life, late))
