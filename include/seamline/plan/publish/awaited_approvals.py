"""Intervals whose newest generations wait for a person alone: they are not built again while nothing has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from seamline.model.errors import Conflict, PublishRefused
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.plan.publish.number_changes import NOT_COMPARED
from seamline.plan.publish.publication import Candidate, Decision, plan_publication, select_publishable


@dataclass(frozen=True)
class AwaitedApproval:
    """An interval that waits for a person's approval of how much it changes."""

    run: str
    """The run that has built it."""
    statements: tuple[Statement, ...]
    """What an approval would publish of it."""

    @property
    def reason(self) -> str:
        """Say why it is not built."""
        return f"built by run {self.run}, whose change waits for approval"


def find_awaited(
    manifest: Manifest, offered: Iterable[Candidate], *, now: datetime
) -> Mapping[str, AwaitedApproval]:
    """Find the intervals of a run, by their ids, that an approval would publish as they are.

    Not those that were not compared: their run may have died before it did, or the next one can.
    """
    some = list(offered)
    found: dict[str, AwaitedApproval] = {}
    for interval in select_publishable(manifest, some).waiting:
        own = [each for each in some if each.generation.interval.id == interval]
        if any(each.waits == NOT_COMPARED for each in own):
            continue
        approval = Decision("", "", approved=True)
        try:
            statements = plan_publication(manifest, own, now=now, decision=approval)
        except (Conflict, PublishRefused):
            continue
        found[interval] = AwaitedApproval(own[0].generation.run, tuple(statements))
    return found


def count_as_published(manifest: Manifest, awaited: Mapping[str, AwaitedApproval]) -> Manifest:
    """Return the manifest as it would be if all were approved."""
    if not awaited:
        return manifest
    approved = {(each.view, each.interval): each for one in awaited.values() for each in one.statements}
    return replace(manifest, published={**manifest.published, **approved})
