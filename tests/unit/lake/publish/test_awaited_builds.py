"""What waits for a person's approval is not built again and again: each run would do it, and ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.past import NOW, build
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.publish import awaited_builds, planning
from seamline.lake.publish.asked_approvals import note_asked
from seamline.lake.publish.candidates import list_candidates
from seamline.lake.publish.planning import plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.reprocessed import read_split_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.errors import NotFound
from seamline.model.protocol.comparison import Change, Comparison
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act
from seamline.model.time.intervals import Interval
from seamline.plan.batch import batch_plan
from seamline.plan.batch.batch_plan import BatchPlan
from seamline.plan.publish.publication import Candidate, Decision

FIRST, SECOND = (Interval(START + day * DAY, START + (day + 1) * DAY) for day in range(2))
EDGE = START + 2 * DAY


def limited(limit: float = 0.05, most: int = 10) -> CompiledPipeline:
    """Declare what a rebuild may change unasked, and how much a run builds."""
    found = sales_pipeline(text=DEFINITION)
    batch = replace(found.definition.batch, approve_change=limit, max_dirty=most)
    return replace(found, definition=replace(found.definition, batch=batch))


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Two published days have got late rows; the first was built again, and its change is a large one."""
    shop = Shop(warehouse)
    shop.state(Act.BIRTH, epoch=0, definition=to_json(shop.compiled.definition))
    shop.epoch([Sale(1, "a", 4), Sale(25 * 60, "b", 7)], watermark=EDGE)
    build(shop, "one", cut=0)
    build(shop, "two", cut=0, day=1)
    shop.epoch([Sale(2, "a", 9), Sale(26 * 60, "b", 1)], watermark=EDGE)
    build_unpublished(shop, "three", 1)
    return shop


def build_unpublished(shop: Shop, id: str, cut: int, most: float = 0.5, *, asked: bool = True) -> None:
    """Build the first day, compare it with what is answered, and ask somebody."""
    build(shop, id, cut=cut, publish=False)
    at = NOW + timedelta(days=1)
    found = Comparison(shop.view.id, FIRST.id, id, cut, "one", 0, at, 0, 1, 0, 0, {"n": Change(1, most)}, {})
    Comparisons.ensure(shop.layout).append([found])
    if asked:
        note_asked(shop.layout, f"run-{id}")


def planned(shop: Shop, pipeline: CompiledPipeline, asked: Interval | None = None) -> list[Interval]:
    """Say which days a run over the dirty intervals builds."""
    return [each.interval for each in plan_of(shop, pipeline, asked).builds]


def plan_of(shop: Shop, pipeline: CompiledPipeline, asked: Interval | None = None) -> BatchPlan:
    """Plan a run over the dirty intervals."""
    return plan_run(pipeline, shop.layout, asked=asked, dirty=True)


@pytest.mark.everywhere
def test_what_waits_is_left_out_and_named(shop: Shop) -> None:
    """The same rows make the same numbers; without a limit nothing waits."""
    assert planned(shop, limited(0.0)) == [FIRST, SECOND]
    found = plan_of(shop, limited())
    assert [each.interval for each in found.builds] == [SECOND]
    [left] = found.left_out
    assert left.interval == FIRST and left.reason == "built by run run-three, whose change waits for approval"


def test_what_waits_takes_no_place_of_others(shop: Shop) -> None:
    """Its debt is the oldest: with one interval a run nothing else would ever be built."""
    assert planned(shop, limited(most=1)) == [SECOND]


def test_a_new_row_has_it_built_again(shop: Shop) -> None:
    """Whoever approves is to see what there is, and the generation that waits is not that any more."""
    shop.epoch([Sale(3, "a", 1)], watermark=EDGE)
    assert planned(shop, limited()) == [FIRST, SECOND]
    build_unpublished(shop, "four", 2)
    assert planned(shop, limited()) == [SECOND]


def test_who_asks_for_it_gets_it(shop: Shop) -> None:
    """A person may want the numbers again after a repair."""
    assert planned(shop, limited(), asked=FIRST) == [FIRST, SECOND]


def test_a_run_that_is_cleared_builds_and_asks_again(shop: Shop) -> None:
    """Its tasks run again from the first, and the last of them is the question."""
    again = plan_run(limited(), shop.layout, asked=None, dirty=True, run="run-three")
    assert [each.interval for each in again.builds] == [FIRST, SECOND]


def test_what_a_later_attempt_left_out_is_built_again(shop: Shop) -> None:
    """Of a run that was cleared only the last attempt can be approved, and it may have built other intervals."""
    builds = Builds.ensure(shop.layout)
    [first] = builds.of("run-three")
    later = first.at + timedelta(days=1)
    builds.append([replace(first, interval=SECOND.id, generation="third", expected="two", at=later)])
    with pytest.raises(NotFound):
        publish_run(limited(), shop.layout, "run-three", only=[FIRST.id])
    assert FIRST in planned(shop, limited())


def test_what_was_not_compared_is_built_again(shop: Shop) -> None:
    """A run that was killed while it compared has asked nobody."""
    build(shop, "killed", cut=1, publish=False)
    assert planned(shop, limited()) == [FIRST, SECOND]


def test_what_nobody_was_asked_about_is_built_again(shop: Shop) -> None:
    """A run that died after it had compared is found in no list of questions."""
    build_unpublished(shop, "dead", 1, asked=False)
    assert planned(shop, limited()) == [FIRST, SECOND]
    note_asked(shop.layout, "run-dead")
    assert planned(shop, limited()) == [SECOND]
    asked = shop.layout.approval("run-dead")
    asked.write_bytes(b"")
    assert planned(shop, limited()) == [FIRST, SECOND]


def test_a_question_is_of_one_attempt_of_a_run(shop: Shop) -> None:
    """The next attempt of a run that is cleared has other numbers, and may die before it asks."""
    builds = Builds.ensure(shop.layout)
    [first] = builds.of("run-three")
    build_unpublished(shop, "again", 1, asked=False)
    [again] = builds.of("run-again")
    builds.append([replace(again, run="run-three", at=first.at + timedelta(days=1))])
    assert planned(shop, limited()) == [FIRST, SECOND]
    note_asked(shop.layout, "run-three")
    assert "again" in shop.layout.approval("run-three").read_text()


def test_only_runs_that_offer_something_are_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a version is new every interval is dirty, and was built by runs that have long been published."""
    read: list[str] = []

    def list_and_note(pipeline: CompiledPipeline, layout: Layout, rows: list[BuildRow]) -> list[Candidate]:
        read.append(rows[0].run)
        return list_candidates(pipeline, layout, rows)

    monkeypatch.setattr(awaited_builds, "list_candidates", list_and_note)
    plan_of(shop, limited(0.0))
    assert read == []
    plan_of(shop, limited())
    assert read == ["run-three"]


def test_where_nothing_waits_the_log_is_read_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit costs a dirty plan nothing while nobody is asked about anything."""
    read: list[int] = []

    def read_and_count(*given: Any) -> Sequence[Epoch]:
        read.append(1)
        return read_split_log(*given)

    monkeypatch.setattr(planning, "read_split_log", read_and_count)
    shop.epoch([Sale(3, "a", 1)], watermark=EDGE)
    build(shop, "four", cut=2)
    assert planned(shop, limited(most=1)) == [SECOND]
    assert len(read) == 1


def test_the_first_of_many_are_named(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is read by people, and handed on by Airflow."""
    monkeypatch.setattr(batch_plan, "NAMED", 0)
    found = plan_of(shop, limited())
    assert (found.left_out, found.unnamed) == ((), 1)


def test_what_no_approval_would_publish_is_built_again(shop: Shop) -> None:
    """Another generation came between, the last one is red, or its change needs nobody."""
    build_unpublished(shop, "small", 1, most=0.01)
    assert planned(shop, limited()) == [FIRST, SECOND]
    build(shop, "red", cut=1, publish=False, passed=False)
    assert planned(shop, limited()) == [FIRST, SECOND]
    build_unpublished(shop, "large", 1)
    assert planned(shop, limited()) == [SECOND]
    shop.state(Act.FORGET, epoch=0, interval=FIRST.id, generation="large")
    assert planned(shop, limited()) == [FIRST, SECOND]


def test_after_the_approval_the_day_is_clean(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left out was as good as built."""
    monkeypatch.setattr("seamline.lake.publish.publishing.refresh_serving", lambda *_: None)
    publish_run(limited(), shop.layout, "run-three", decision=Decision("ann", "right", approved=True))
    assert planned(shop, limited()) == [SECOND] and not plan_of(shop, limited()).left_out
    assert len(Builds.ensure(shop.layout).of_intervals([FIRST.id])) == 2
