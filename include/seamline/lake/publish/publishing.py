"""Publishing a run: one commit of the manifest for all its views and intervals, then the serving tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from seamline.lake.publish.awaited_builds import read_awaited
from seamline.lake.publish.candidates import filter_unpublished, list_candidates
from seamline.lake.read import serving_table
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import require_committed, require_known_decisions, require_repaired
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.live_versions import list_primary_views
from seamline.model.errors import NotFound, PublishRefused
from seamline.model.protocol.manifest import How, Manifest, Statement
from seamline.plan.publish.publication import (
    RED,
    Candidate,
    Decision,
    Offer,
    plan_publication,
    select_publishable,
)
from seamline.plan.publish.superseded import list_overtaken, list_superseded, set_aside
from seamline.runtime.failpoints import hit_failpoint

Phase = Callable[..., AbstractContextManager[None]]
"""Measures a part of a publication, which it is given the name of; more is known of some parts by keywords."""


def unmeasured(name: str, **attributes: str | int) -> AbstractContextManager[None]:
    """Measure nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Publication:
    """What a run has published, and what was held back."""

    statements: tuple[Statement, ...]
    """Empty if all was published before."""
    held_back: Mapping[str, str]
    """By interval id: why it was not published."""
    waiting: tuple[str, ...] = ()
    """The ids of those of them that wait for a person's approval alone (``approve_change``)."""


def publish_run(
    pipeline: CompiledPipeline,
    layout: Layout,
    run: str,
    *,
    decision: Decision | None = None,
    only: Collection[str] = (),
    phase: Phase = unmeasured,
) -> Publication:
    """Publish the intervals of a run whose certificates are all there and green, in one commit.

    What changes answers by more than the definition lets it waits. A person's ``decision`` may publish either; ``only``
    names the intervals it is about, and ``phase`` measures each part. An interval that another run has published since
    this one began is held back, and an approval leaves those out which a newer run has built that waits. Raises
    PublishRefused if there is none, and none that waits, or the log has lost epochs of them, OutOfStep if a start has
    to repair it first, and Conflict if other runs have published all of them; nothing is published then.
    """
    require_repaired(layout)
    builds = Builds.ensure(layout).of(run)
    if not builds:
        raise NotFound(
            f"Run {run!r} of {pipeline.name} has built nothing.", hint="build first, then publish."
        )
    if only and not (builds := [row for row in builds if row.interval in only]):
        raise NotFound(
            f"Run {run!r} of {pipeline.name} has not built {', '.join(sorted(only))}.",
            hint="see `seamline history`.",
        )
    with phase("publish.check"):
        candidates = list_candidates(pipeline, layout, builds)
        newer: Mapping[str, str] = {}
        if decision and decision.approved:
            known, mine = ManifestTable.ensure(layout).read(), {row.interval for row in builds}
            newer = list_superseded(read_awaited(pipeline, layout, known, mine, run=run))
    with phase("publish.commit"):
        statements, offer = commit_publication(
            layout, ManifestTable.ensure(layout), candidates, decision, newer=newer
        )
    held_back = offer.held_back
    refresh_serving(pipeline, layout, [row for row in builds if row.interval not in held_back], phase)
    return Publication(tuple(statements), held_back, tuple(sorted(offer.waiting)))


def list_run_publications(layout: Layout, run: str) -> list[Statement]:
    """List what a run has published of its last attempt and still answers, whichever of its tasks did it."""
    published = ManifestTable.ensure(layout).read().published
    places = ((row, published.get((row.view, row.interval))) for row in Builds.ensure(layout).of(run))
    return [
        each
        for row, each in places
        if each and each.generation == row.generation and each.how is not How.ROLLBACK
    ]


def commit_publication(
    layout: Layout,
    table: ManifestTable,
    offered: list[Candidate],
    decision: Decision | None = None,
    *,
    newer: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Statement], Offer]:
    """Write the statements; decide again whenever another commit came first. ``newer`` is what others supersede."""

    def once() -> tuple[list[Statement], Offer]:
        manifest = table.read()
        left = filter_unpublished(manifest, offered)
        offer = select_offer(manifest, left, decision, newer)
        if not offer.green:
            if len(left) < len(offered) or offer.waiting:
                return [], offer
            raise publication_refusal(offered[0].generation.run, offer)
        for cut, generation in {each.generation.cut: each.generation.id for each in offer.green}.items():
            require_committed(layout, cut, generation)
        for known, generation in {
            each.generation.restated: each.generation.id for each in offer.green
        }.items():
            require_known_decisions(layout, known, generation)
        statements = plan_publication(manifest, offer.green, now=datetime.now(UTC), decision=decision)
        table.commit(statements)
        hit_failpoint("published")
        return statements, offer

    return retry_overtaken(once)


def select_offer(
    manifest: Manifest, left: list[Candidate], decision: Decision | None, newer: Mapping[str, str]
) -> Offer:
    """Select what may be published, without what other runs have superseded, or published first.

    If they have published first all that nothing else holds back, it is offered all the same: the manifest refuses it.
    """
    despite, approved = (decision.despite, decision.approved) if decision else (False, False)
    offer = set_aside(select_publishable(manifest, left, despite=despite, approved=approved), newer)
    kept = set_aside(offer, list_overtaken(manifest, left))
    return kept if kept.green or kept.waiting or not offer.green else offer


def publication_refusal(run: str, offer: Offer) -> PublishRefused:
    """Describe why nothing of a run may be published."""
    whys = sorted(set(offer.held_back.values()))
    if whys == [RED]:
        return PublishRefused(
            f"No interval of run {run!r} is certified.",
            hint="fix what its certificates report, then build again.",
        )
    return PublishRefused(
        f"No interval of run {run!r} can be published: {'; '.join(whys)}.", hint="see `seamline history`."
    )


def refresh_serving(
    pipeline: CompiledPipeline, layout: Layout, builds: list[BuildRow], phase: Phase = unmeasured
) -> None:
    """Bring the serving tables of a run's views up to date for its intervals."""
    for view in list_primary_views(add_live_versions(pipeline, layout)):
        intervals = {row.interval for row in builds if row.view.partition("/")[0] == view.name}
        if intervals:
            with phase("publish.serve", view=view.name, intervals=len(intervals)):
                serving_table.refresh_serving_table(pipeline, layout, view, sorted(intervals))
            hit_failpoint("served")
