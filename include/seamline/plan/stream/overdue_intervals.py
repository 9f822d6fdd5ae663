"""Which intervals should have been published by now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import How, Manifest
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Spanning, list_shown_intervals

NEWEST = 3
"""How many of the intervals that have closed last are built without being asked for."""


def list_overdue_intervals(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    grid: Grid,
    *,
    within: timedelta,
    now: datetime,
    ahead: timedelta = timedelta(0),
    spanning: Spanning = MappingProxyType({}),
) -> list[Interval]:
    """List the intervals that have rows, ended longer than ``within`` ago, and lack a served view's generation.

    One whose rows are joined with rows up to ``ahead`` behind its end counts as ended there. Late rows make no interval
    overdue: what was published is served with them, from the speed layer. What is only provisional is not what was
    promised. Of ``spanning`` folds those without accepted rows have them, too, once they have closed.
    """
    known = {id for epoch in ledger for id, rows in epoch.accepted.items() if rows}
    mark = max((each.watermark for each in ledger if each.watermark), default=None)
    found: set[Interval] = set()
    for view in set(manifest.serving.values()):
        shown = list_shown_intervals(grid, spanning.get(view), known, mark)
        found |= {
            each
            for each in map(grid.named, shown)
            if each.end + ahead + within < now
            and (each.id in known or (mark is not None and each.end + ahead <= mark))
            and has_no_final_generation(manifest, view, each.id)
        }
    return sorted(found)


def list_just_closed(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    grid: Grid,
    *,
    watermark: datetime | None,
    ahead: timedelta = timedelta(0),
    spanning: Spanning = MappingProxyType({}),
) -> list[Interval]:
    """List those of the newest intervals that are closed by a watermark, have rows, and lack a generation.

    The watermark is that of the newest edge, on which a cut may fall. Older intervals are left to the schedule: a
    pipeline that is new, or failed for a day, would ask for all of its past at once.
    """
    if watermark is None:
        return []
    now = watermark + timedelta(microseconds=1)
    found = list_overdue_intervals(
        ledger, manifest, grid, within=timedelta(0), now=now, ahead=ahead, spanning=spanning
    )
    return [each for each in found if each.end + ahead > watermark - NEWEST * grid.length]


def has_no_final_generation(manifest: Manifest, view: str, interval: str) -> bool:
    """Return whether nothing but a provisional generation is published."""
    found = manifest.published.get((view, interval))
    return found is None or found.how is How.PROVISIONAL
