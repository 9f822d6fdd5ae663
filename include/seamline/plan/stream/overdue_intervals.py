"""Which intervals should have been published by now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import How, Manifest
from seamline.model.time.intervals import Grid, Interval


def list_overdue_intervals(
    ledger: Sequence[Epoch],
    manifest: Manifest,
    grid: Grid,
    *,
    within: timedelta,
    now: datetime,
    ahead: timedelta = timedelta(0),
) -> list[Interval]:
    """List the intervals that have rows, ended longer than ``within`` ago, and lack a served view's generation.

    One whose rows are joined with rows up to ``ahead`` behind its end counts as ended there. Late rows make no interval
    overdue: what was published is served with them, from the speed layer. What is only provisional is not what was
    promised.
    """
    served = set(manifest.serving.values())
    known = {grid.named(id) for epoch in ledger for id, rows in epoch.accepted.items() if rows}
    return sorted(
        each
        for each in known
        if each.end + ahead + within < now
        and any(has_no_final_generation(manifest, view, each.id) for view in served)
    )


def has_no_final_generation(manifest: Manifest, view: str, interval: str) -> bool:
    """Return whether nothing but a provisional generation is published."""
    found = manifest.published.get((view, interval))
    return found is None or found.how is How.PROVISIONAL
