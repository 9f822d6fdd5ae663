"""Of two runs that wait with one interval an approval publishes what it can, and says what another run has replaced."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.unit.lake.publish.test_approved_changes import compared, keep, limited
from tests.unit.lake.publish.test_publish import DAYS, NOW, SHOP, VIEW, offer, served

from seamline.lake.publish import publishing
from seamline.lake.publish.asked_approvals import note_asked
from seamline.lake.publish.publishing import Publication, publish_run
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import Conflict, PublishRefused
from seamline.model.protocol.manifest import Act, Statement
from seamline.plan.publish.publication import Decision

APPROVED = Decision("cli:ann", "right", approved=True)


@pytest.fixture
def layout(warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Two days are published."""
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    found = Layout(warehouse, "shop")
    offer(found, "a")
    publish_run(SHOP, found, "a")
    return found


def wait_for(layout: Layout, run: str, days: Sequence[str], minutes: int, *, asked: bool = True) -> None:
    """Build days again so that they wait, and ask somebody."""
    offer(layout, run, cut=5 + minutes, expected="g-a", days=days, at=NOW + timedelta(minutes=minutes))
    keep(layout, *(compared(day, f"g-{run}", 0.5) for day in days))
    if asked:
        note_asked(layout, run)


def approve(layout: Layout, run: str) -> Publication:
    """Say yes to a run."""
    return publish_run(limited(0.05), layout, run, decision=APPROVED)


@pytest.mark.everywhere
def test_approving_the_newer_of_two_publishes_it_and_the_older_says_why_not(layout: Layout) -> None:
    """Whoever says yes gets what was built last, and the days of the other run that nobody has built since."""
    wait_for(layout, "older", DAYS, 1)
    wait_for(layout, "newer", DAYS[:1], 2)
    done = approve(layout, "older")
    assert served(layout) == ["g-a", "g-older"]
    assert (done.waiting, [*done.held_back]) == ((), [DAYS[0]])
    assert done.held_back[DAYS[0]].startswith("run newer has built it since, and waits for approval")
    assert len(approve(layout, "newer").statements) == 1
    assert served(layout) == ["g-newer", "g-older"]


def test_what_the_older_has_published_before_is_held_back_alone(layout: Layout) -> None:
    """It was approved before the newer one was built: what only the newer one has is published."""
    wait_for(layout, "older", DAYS[:1], 1)
    approve(layout, "older")
    wait_for(layout, "newer", DAYS, 2)
    done = approve(layout, "newer")
    assert served(layout) == ["g-older", "g-newer"]
    assert done.held_back == {DAYS[0]: "run older has published g-older since it was planned: build it again"}
    with pytest.raises(Conflict, match="g-older is published, the run expected g-a"):
        publish_run(limited(0.05), layout, "newer", decision=APPROVED, only=DAYS[:1])


def test_nobody_is_asked_for_what_no_approval_would_publish(layout: Layout) -> None:
    """A yes would end in a refusal."""
    wait_for(layout, "older", DAYS[:1], 1)
    approve(layout, "older")
    wait_for(layout, "newer", DAYS, 2)
    done = publish_run(limited(0.05), layout, "newer")
    assert (done.statements, done.waiting, [*done.held_back]) == ((), DAYS[1:], [*DAYS])
    wait_for(layout, "newest", DAYS[:1], 3)
    with pytest.raises(PublishRefused, match="run older has published g-older"):
        publish_run(limited(0.05), layout, "newest")


def test_of_an_older_run_that_is_wholly_superseded_the_newer_is_named(layout: Layout) -> None:
    """An approval that does nothing says what to approve."""
    wait_for(layout, "older", DAYS, 1)
    wait_for(layout, "newer", DAYS, 2)
    with pytest.raises(PublishRefused, match="run newer has built it since, and waits for approval"):
        approve(layout, "older")
    assert served(layout) == ["g-a", "g-a"]
    assert len(approve(layout, "newer").statements) == 2


def test_a_newer_run_that_has_asked_nobody_is_in_nobodys_way(layout: Layout) -> None:
    """It died: what nobody can say yes to supersedes nothing."""
    wait_for(layout, "older", DAYS, 1)
    wait_for(layout, "newer", DAYS, 2, asked=False)
    assert len(approve(layout, "older").statements) == 2


def test_a_day_that_another_run_has_published_keeps_no_other_from_its_readers(layout: Layout) -> None:
    """Without approvals too: each interval is compared and set by itself (rule 10)."""
    offer(layout, "b", cut=9, expected="g-a")
    offer(layout, "c", cut=9, expected="g-a", days=DAYS[:1])
    publish_run(SHOP, layout, "c")
    done = publish_run(SHOP, layout, "b")
    assert served(layout) == ["g-c", "g-b"] and [*done.held_back] == [DAYS[0]]


def test_what_was_forgotten_meanwhile_is_held_back_alone(layout: Layout) -> None:
    """Retention may let go what has waited for long; the other days of the run are still there."""
    wait_for(layout, "b", DAYS, 1)
    ManifestTable.ensure(layout).decide(
        lambda _: [Statement(Act.FORGET, VIEW.id, interval=DAYS[0], generation="g-b", epoch=6)]
    )
    done = approve(layout, "b")
    assert served(layout) == ["g-a", "g-b"]
    assert done.held_back == {DAYS[0]: "g-b is forgotten, its files are being deleted: build it again"}


def test_what_was_withdrawn_meanwhile_is_held_back_alone(layout: Layout) -> None:
    """There is no run then that has published something else."""
    offer(layout, "b", cut=9, expected="g-a")
    ManifestTable.ensure(layout).decide(
        lambda _: [Statement(Act.WITHDRAW, VIEW.id, interval=DAYS[0], generation="g-a", epoch=5)]
    )
    done = publish_run(SHOP, layout, "b")
    assert served(layout) == ["g-b"]
    assert done.held_back == {DAYS[0]: "g-a is not published any more: build it again"}
