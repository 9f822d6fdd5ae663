"""Which intervals should have been published by now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import How, Manifest
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Spanning, list_shown_intervals


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


def has_no_final_generation(manifest: Manifest, view: str, interval: str) -> bool:
    """Return whether nothing but a provisional generation is published."""
    found = manifest.published.get((view, interval))
    return found is None or found.how is How.PROVISIONAL
