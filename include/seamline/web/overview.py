"""Every pipeline on one line: its stream, how far it is certified, what is owed and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from seamline.lake.audits import audits_of
from seamline.lake.comparisons import comparisons_of
from seamline.model.errors import SeamlineError
from seamline.plan.observed import FINE
from seamline.serve.completeness import completeness
from seamline.supervisor.observe import observe
from seamline.web.access import kafka_env, opened
from seamline.web.calendar import Shade, certified_through, squares


@dataclass(frozen=True)
class Card:
    """A pipeline at a glance; None is not known. ``through`` is what every view is certified to."""

    name: str
    actual: str
    desired: str
    fine: bool
    lag: int | None
    epoch: int | None
    committed: datetime | None
    watermark: datetime | None
    through: datetime | None
    debts: int
    alarms: tuple[str, ...]


def cards(names: Sequence[str]) -> list[Card]:
    """Look at pipelines side by side: one that is slow to tell keeps no other waiting."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(card, names))


def card(name: str) -> Card:
    """Look at one; what cannot be read of it is an alarm."""
    try:
        return looked_at(name)
    except SeamlineError as error:
        return Card(name, "unknown", "unknown", False, None, None, None, None, None, 0, (str(error),))


def looked_at(name: str) -> Card:
    """Put together what its tables, its stream and its alarms say."""
    pipeline, layout = opened(name)
    seen = observe(name, layout, pipeline, env=kafka_env(pipeline))
    known = squares(completeness(pipeline, layout), pipeline.grid, seen.watermark)
    views = {view.name: [each for each in known if each.cell.view == view.name] for view in pipeline.views}
    ends = [certified_through(some, pipeline.grid) for some in views.values()]
    alarms = [f"{each.kind}: {each.subject}: {each.message}" for each in seen.alerts]
    alarms += [f"hole, not decided: {hole}" for hole in seen.holes or ()]
    for view in pipeline.views:
        newest = {each.interval: each for each in comparisons_of(layout, view.id)}
        alarms += [f"{view.name} {each.interval}: {each.alarm}" for each in newest.values() if each.alarm]
    for audit in audits_of(layout, 1):
        alarms += [f"audit: {finding}" for finding in audit.findings]
    failed = sum(each.shade is Shade.FAILED for each in known)
    if failed:
        alarms.append(f"{failed} intervals have a certificate that did not pass")
    owed = {each.cell.interval for each in known if each.shade in (Shade.DIRTY, Shade.NEVER)}
    return Card(
        name=name,
        actual=seen.actual.value,
        desired=str(seen.desired),
        fine=seen.actual in FINE,
        lag=seen.lag.records,
        epoch=seen.epoch,
        committed=seen.committed_at,
        watermark=seen.watermark,
        through=min((end for end in ends if end), default=None) if all(ends) else None,
        debts=len(owed),
        alarms=tuple(alarms),
    )
