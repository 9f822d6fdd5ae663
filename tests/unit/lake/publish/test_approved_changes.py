"""A generation that changes answers by much waits for a person; one that does not is published as always."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from tests.unit.lake.publish.test_publish import DAYS, NOW, SHOP, VIEW, offer, served

from seamline.cli.building import require_approved_changes
from seamline.lake.publish import publishing
from seamline.lake.publish.asked_approvals import read_asked
from seamline.lake.publish.publishing import publish_run
from seamline.lake.publish.unapproved_changes import find_unapproved
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_with_problems
from seamline.model.errors import NotApproved, PublishRefused
from seamline.model.protocol.comparison import Change, Comparison
from seamline.model.protocol.manifest import Generation, Manifest
from seamline.plan.publish.number_changes import (
    describe_unapproved_change,
    find_comparison_share,
    find_largest,
)
from seamline.plan.publish.publication import Candidate, Decision, select_publishable

ticks = count()


def limited(limit: float) -> CompiledPipeline:
    """Declare what a rebuild may change unasked."""
    batch = replace(SHOP.definition.batch, approve_change=limit)
    return replace(SHOP, definition=replace(SHOP.definition, batch=batch))


def compared(
    day: str, generation: str, most: float | None, *, missing: int = 0, extra: int = 0
) -> Comparison:
    """Compare ten places, of which one changed by so much."""
    changes = {"n": Change(1, most), "names": Change(2, None)}
    at, places = NOW + timedelta(minutes=next(ticks)), (9 - missing, 1, missing, extra)
    return Comparison(VIEW.id, day, generation, 9, "g-a", 5, at, *places, changes, {})


@pytest.fixture
def layout(warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Two days are published by one run, and built again by another."""
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    found = Layout(warehouse, "shop")
    offer(found, "a")
    publish_run(SHOP, found, "a")
    offer(found, "b", cut=9, expected="g-a")
    return found


def keep(layout: Layout, *found: Comparison) -> None:
    """Keep what was compared before anything is published."""
    Comparisons.ensure(layout).append(found)


def waiting(layout: Layout, limit: float) -> Sequence[str]:
    """Say which days of the second run wait."""
    return [day for _, day in find_unapproved(limited(limit), layout, Builds.ensure(layout).of("b"))]


@pytest.mark.everywhere
def test_a_large_change_waits_and_a_small_one_is_published(layout: Layout) -> None:
    """One day that somebody has to look at keeps no other from its readers; the decision has a name."""
    keep(layout, compared(DAYS[0], "g-b", 0.04), compared(DAYS[1], "g-b", -0.5))
    pipeline = limited(0.05)
    done = publish_run(pipeline, layout, "b")
    assert served(layout) == ["g-b", "g-a"]
    assert (done.waiting, [*done.held_back]) == ((DAYS[1],), [DAYS[1]])
    assert "changes answers by 50.0%, more than approve_change=0.05" in done.held_back[DAYS[1]]
    with pytest.raises(NotApproved, match="1 interval of run b held back") as told:
        require_approved_changes(layout, "b", done)
    assert "--run b --approve" in told.value.hint
    assert read_asked(layout, "b") == {"g-b"}
    again = publish_run(pipeline, layout, "b")
    assert (again.statements, again.waiting) == ((), (DAYS[1],))
    decided = Decision("cli:ann", "a price was wrong", approved=True)
    done = publish_run(pipeline, layout, "b", decision=decided)
    assert (served(layout), done.waiting) == (["g-b", "g-b"], ())
    require_approved_changes(layout, "b", done)
    stated = ManifestTable.ensure(layout).read().published[VIEW.id, DAYS[1]]
    assert (stated.actor, stated.reason, stated.certified) == ("cli:ann", "a price was wrong", True)


def test_where_all_waits_nothing_is_published_and_nothing_is_refused(layout: Layout) -> None:
    """A task that failed would be tried again; it is a person who is waited for."""
    keep(layout, *(compared(day, "g-b", 3.0) for day in DAYS))
    done = publish_run(limited(0.05), layout, "b")
    assert (done.statements, done.waiting, served(layout)) == ((), DAYS, ["g-a", "g-a"])


def test_what_was_not_compared_is_not_known_to_be_small(layout: Layout) -> None:
    """A comparison that failed is no approval."""
    keep(layout, compared(DAYS[0], "g-b", 0.0), compared(DAYS[1], "g-other", 0.0))
    assert waiting(layout, 0.05) == [DAYS[1]]
    assert waiting(layout, 0.0) == []


def test_what_replaces_nothing_waits_for_nobody(layout: Layout) -> None:
    """A first build changes no published number, whatever others have changed."""
    builds = Builds.ensure(layout).of("a")
    assert find_unapproved(limited(0.05), layout, builds) == {}
    keep(layout, compared(DAYS[0], "g-b", 0.0))
    assert find_unapproved(limited(0.05), layout, builds) == {}


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (compared(DAYS[0], "g", 0.1), 0.1),
        (compared(DAYS[0], "g", -0.3), 0.3),
        (compared(DAYS[0], "g", None), 0.0),
        (compared(DAYS[0], "g", 0.1, missing=2), 0.2),
        (compared(DAYS[0], "g", 0.1, missing=1, extra=4), 0.5),
    ],
)
def test_rows_that_come_and_go_are_a_change_too(found: Comparison, share: float) -> None:
    """As a share of the rows that there were; in either direction."""
    assert find_comparison_share(found) == pytest.approx(share)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({"n": Change(3, None, 3), "names": Change(9, None)}, 0.3),
        ({"n": Change(3, 0.4, 1)}, 0.4),
        ({"n": Change(2, 0.01), "mean": Change(2, math.nan)}, math.nan),
    ],
)
def test_numbers_that_were_zero_or_are_none_any_more_are_a_change(
    changes: dict[str, Change], share: float
) -> None:
    """A rebuild that makes nothing of each number has changed none of them by a share."""
    found = replace(compared(DAYS[0], "g", None), changed=1, measures=changes)
    assert find_comparison_share(found) == pytest.approx(share, nan_ok=True)
    assert describe_unapproved_change(found, 0.25)


def test_the_largest_of_some_is_what_is_no_number() -> None:
    """Whichever comes first: a key whose number is lost hides behind none that has moved a little."""
    for numbers in ([0.01, math.nan], [math.nan, 0.01], [None, math.nan, math.inf]):
        assert math.isnan(find_largest(numbers) or 0.0)
    assert find_largest([0.1, -0.3, None]) == -0.3


def test_approval_is_no_certificate_and_a_certificate_no_approval() -> None:
    """Each is decided for itself."""
    day = SHOP.grid.named(DAYS[0])
    red, large = (
        Candidate(Generation("g", view, day, 5, 1), view == "b/1", "", waits="" if view == "a/1" else "large")
        for view in ("a/1", "b/1")
    )
    for despite, approved, why in ((True, False, "large"), (False, True, "not certified")):
        offer = select_publishable(Manifest(), [red, large], despite=despite, approved=approved)
        assert (offer.green, offer.held_back) == ((), {DAYS[0]: why})
        assert offer.waiting == (frozenset(DAYS[:1]) if despite else frozenset())
    assert len(select_publishable(Manifest(), [red, large], despite=True, approved=True).green) == 2


def test_a_red_run_is_refused_as_it_was(layout: Layout) -> None:
    """An approval of numbers is none of checks that failed."""
    offer(layout, "c", cut=9, expected="g-a", passed=False, days=DAYS[1:])
    with pytest.raises(PublishRefused, match="No interval of run 'c' is certified"):
        publish_run(limited(0.05), layout, "c", decision=Decision("cli:ann", "why", approved=True))


@pytest.mark.parametrize("limit", [-0.1, float("inf"), float("nan")])
def test_a_limit_is_a_share(limit: float) -> None:
    """Of minus five percent nobody knows what it would mean."""
    compiled, problems = compile_with_problems(limited(limit).definition)
    assert compiled is None and [each.field for each in problems] == ["batch.approve_change"]
