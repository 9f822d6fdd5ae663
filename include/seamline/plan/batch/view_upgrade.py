"""A changed view beside the version that is served: what is to be built of it, and which intervals compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restated_views import Restated
from seamline.model.time.intervals import Grid
from seamline.model.time.reached_intervals import (
    Reaching,
    find_spanning_views,
    list_shown_intervals,
    widen_to_intervals,
)
from seamline.plan.batch.batch_plan import BatchPlan
from seamline.plan.batch.build_causes import Cause, Kind
from seamline.plan.batch.interval_arrivals import Arrivals


@dataclass(frozen=True)
class Common:
    """The intervals of which two versions count the same events, certified, and the others."""

    intervals: tuple[str, ...]
    """Ids of the intervals of which both count the same events, certified."""
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of the other intervals, by the reason why they do not."""


def find_common_intervals(
    manifest: Manifest,
    old: str,
    new: str,
    arrivals: Arrivals,
    grid: Grid,
    restated: Restated | None = None,
    views: Sequence[Reaching] = (),
    mark: datetime | None = None,
) -> Common:
    """Find the intervals in which two versions (``name/fingerprint``) can differ by their definitions only.

    ``views`` are both, where their rows may be made of those of other intervals; ``mark`` is the watermark.
    """
    found: list[str] = []
    others: dict[str, list[str]] = {}
    decided = restated or Restated(grid)
    spanning = find_spanning_views(grid, views).values()
    shown = (list_shown_intervals(grid, each, arrivals.intervals, mark) for each in spanning)
    for id in sorted({*arrivals.intervals}.union(*shown)):
        if why := find_comparison_blocker(manifest, old, new, id, arrivals, decided, views):
            others.setdefault(why, []).append(id)
        else:
            found.append(id)
    return Common(tuple(found), others)


def find_comparison_blocker(
    manifest: Manifest,
    old: str,
    new: str,
    id: str,
    arrivals: Arrivals,
    restated: Restated,
    views: Sequence[Reaching] = (),
) -> str:
    """Say why an interval does not compare; empty if it does."""
    before, after = manifest.published.get((old, id)), manifest.published.get((new, id))
    if after is None:
        return "not built of the new version"
    if before is None:
        return "not built of the served version"
    if not (before.certified and after.certified):
        return "not certified of both versions"
    grid = restated.grid
    spans = [widen_to_intervals(grid, grid.named(id), view) for view in views] or [grid.named(id)]
    read = {each.id for span in spans for each in grid.within(span)}
    if any(
        arrivals.rows(each, until=before.epoch) != arrivals.rows(each, until=after.epoch) for each in read
    ):
        return "rows came between the cuts of the two versions"
    if restated.list_between(new, restated.grid.named(id), before.restated, after.restated):
        return "restated between the builds of the two versions"
    return ""


def keep_unbuilt_intervals(plan: BatchPlan, manifest: Manifest, new: str) -> BatchPlan:
    """Keep of a plan over all dirty intervals those that the new version was never built of, as asked for."""
    mine = (each for each in plan.builds if (new, each.interval.id) not in manifest.published)
    asked = tuple(replace(each, causes=(Cause(Kind.ASKED), *each.causes)) for each in mine)
    return replace(plan, builds=asked)
