"""Publishing a run without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import sales_pipeline

from seamline.lake.publish import publishing
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import Conflict, NotFound, Overtaken, PublishRefused
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.protocol.manifest import Act, Generation, Manifest, Statement
from seamline.plan.publish.publication import Candidate, Offer, select_publishable
from seamline.quality.certify import certificates_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHOP = sales_pipeline()
VIEW = SHOP.views[0]
DAYS = ("2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z")


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(publishing, "refresh_serving", lambda *given: None)
    return Layout(tmp_path, "shop")


def offer(
    layout: Layout,
    run: str,
    *,
    cut: int = 5,
    expected: str = "",
    passed: bool = True,
    attempt: str = "",
    days: Sequence[str] = DAYS,
    at: datetime = NOW,
) -> None:
    """Write what a build and a certification leave behind for two days, or others."""
    generation = f"g-{attempt or run}"
    rows = [
        BuildRow(run, VIEW.id, day, generation, cut, 1, 1, 1, 0, 0, expected, 0.1, "test", at) for day in days
    ]
    Builds.ensure(layout).append(rows)
    Certificates.ensure(layout).append(
        [
            Certificate(
                VIEW.name,
                VIEW.fingerprint,
                row.generation,
                SHOP.grid.named(row.interval),
                cut,
                run,
                "test",
                NOW,
                (Check("all", passed or row.interval != DAYS[1], ""),),
            )
            for row in rows
        ]
    )


def served(layout: Layout) -> list[str]:
    manifest = ManifestTable.ensure(layout).read()
    return [
        manifest.published[VIEW.id, day].generation for day in DAYS if (VIEW.id, day) in manifest.published
    ]


def test_a_run_is_published_in_one_commit_and_only_once(layout: Layout):
    """A retried task must not write the same generation again."""
    offer(layout, "a")
    assert len(publishing.publish_run(SHOP, layout, "a").statements) == 2
    version = ManifestTable.ensure(layout).read().version
    assert publishing.publish_run(SHOP, layout, "a").statements == ()
    assert (ManifestTable.ensure(layout).read().version, served(layout)) == (version, ["g-a", "g-a"])


def test_a_run_that_was_withdrawn_is_refused_when_its_task_is_tried_again(layout: Layout):
    """Nothing of it is served, and the task ended well; it is not published again either."""
    offer(layout, "a")
    publishing.publish_run(SHOP, layout, "a")
    offer(layout, "b", cut=9, expected="g-a")
    publishing.publish_run(SHOP, layout, "b")
    table = ManifestTable.ensure(layout)
    table.read()
    table.commit([Statement(Act.WITHDRAW, VIEW.id, interval=day, generation="g-b", epoch=9) for day in DAYS])
    with pytest.raises(PublishRefused, match="Generation g-b .* is forgotten"):
        publishing.publish_run(SHOP, layout, "b")
    assert publishing.publish_run(SHOP, layout, "a").statements == ()
    assert served(layout) == []


def test_a_red_interval_is_held_back_and_the_green_one_published(layout: Layout):
    """One day that can never be green must not keep the year from being served."""
    offer(layout, "a")
    publishing.publish_run(SHOP, layout, "a")
    offer(layout, "b", cut=9, expected="g-a", passed=False)
    done = publishing.publish_run(SHOP, layout, "b")
    assert ([each.interval for each in done.statements], done.held_back) == (
        [DAYS[0]],
        {DAYS[1]: "not certified"},
    )
    assert served(layout) == ["g-b", "g-a"]


def test_the_views_of_a_red_interval_are_held_back_together(layout: Layout):
    """Two views of one day that tell of different logs would contradict each other."""
    day = SHOP.grid.named(DAYS[0])
    one, other = (Candidate(Generation("g", view, day, 5, 1), view == "a/1", "") for view in ("a/1", "b/1"))
    assert select_publishable(Manifest(), [one, other]) == Offer((), {DAYS[0]: "not certified"})
    assert select_publishable(Manifest(), [one]) == Offer((one,))


def test_an_interval_below_its_floor_is_held_back_and_the_other_published(layout: Layout):
    """One day that has to be built again keeps no other from its readers."""
    floor = Statement(Act.FLOOR, VIEW.id, epoch=6, interval=DAYS[0])
    ManifestTable.ensure(layout).decide(lambda _: [floor])
    offer(layout, "run")
    done = publishing.publish_run(SHOP, layout, "run")
    assert [each.interval for each in done.statements] == [DAYS[1]]
    assert done.held_back == {DAYS[0]: "its cut 5 is below the floor 6: build it again"}


def test_a_run_without_a_green_interval_publishes_nothing(layout: Layout):
    """A certify task that died has left no certificates at all."""
    offer(layout, "a")
    Builds.ensure(layout).append([replace(row, run="b") for row in Builds.ensure(layout).of("a")])
    with pytest.raises(PublishRefused, match="No interval of run 'b' is certified"):
        publishing.publish_run(SHOP, layout, "b")
    assert served(layout) == []


def test_a_run_that_another_has_overtaken_is_refused(layout: Layout):
    """Publishing is compare-and-set on what the run saw when it began."""
    offer(layout, "a")
    offer(layout, "b", cut=9)
    publishing.publish_run(SHOP, layout, "b")
    with pytest.raises(Conflict):
        publishing.publish_run(SHOP, layout, "a")
    assert served(layout) == ["g-b", "g-b"]


def test_a_run_that_is_built_again_publishes_what_it_has_built_last_and_no_more(layout: Layout):
    """Cleared, or run again by a backfill, it plans anew: what an earlier attempt left is in nobody's way.

    first    [day 1][day 2]   never published
    between         [day 2]   published by another run
    last     [day 1]          published
    """
    offer(layout, "a")
    offer(layout, "b", cut=9, days=DAYS[1:])
    publishing.publish_run(SHOP, layout, "b")
    offer(layout, "a", cut=9, attempt="a2", days=DAYS[:1], at=NOW + timedelta(days=3))
    done = publishing.publish_run(SHOP, layout, "a")
    assert ([each.interval for each in done.statements], done.held_back) == ([DAYS[0]], {})
    assert served(layout) == ["g-a2", "g-b"]
    assert [each.generation for each in certificates_of(layout, "a")] == ["g-a2"]


def test_a_repeated_publish_does_not_undo_what_came_after(layout: Layout):
    """A task cleared in the UI weeks later must not bring old numbers back."""
    offer(layout, "a")
    publishing.publish_run(SHOP, layout, "a")
    offer(layout, "b", cut=9, expected="g-a")
    publishing.publish_run(SHOP, layout, "b")
    assert publishing.publish_run(SHOP, layout, "a").statements == ()
    assert served(layout) == ["g-b", "g-b"]


def test_a_commit_lost_to_somebody_else_is_decided_again(layout: Layout, monkeypatch: pytest.MonkeyPatch):
    """Two runs over different days publish at once every night."""
    offer(layout, "a")
    real, lost = ManifestTable.commit, iter([True])

    def commit(table: ManifestTable, statements: list) -> int:
        if next(lost, False):
            raise Overtaken("somebody was first")
        return real(table, statements)

    monkeypatch.setattr(ManifestTable, "commit", commit)
    assert len(publishing.publish_run(SHOP, layout, "a").statements) == 2


def test_a_run_that_built_nothing_says_so(layout: Layout):
    """An empty success would look like a publication."""
    with pytest.raises(NotFound, match="built nothing"):
        publishing.publish_run(SHOP, layout, "x")
