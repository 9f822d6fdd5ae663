"""Reads which intervals have generations that wait for a person's approval alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from seamline.lake.publish.publishing import filter_unpublished, list_candidates
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds, keep_newest_attempt
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.manifest import Manifest
from seamline.plan.publish.awaited_approvals import AwaitedApproval, find_awaited


def read_awaited(
    pipeline: CompiledPipeline,
    layout: Layout,
    manifest: Manifest,
    intervals: Collection[str],
    *,
    run: str = "",
) -> Mapping[str, AwaitedApproval]:
    """Read which of some intervals wait, by their ids; nothing without a limit (``approve_change``).

    What ``run`` itself has built does not wait: a run that is cleared builds, and asks, again. Certificates and
    comparisons are read only of runs that have something which stands beside what is published.
    """
    place = layout.table("builds")
    if not (intervals and pipeline.definition.batch.approve_change and Table.exists(place)):
        return {}
    attempts: dict[str, list[BuildRow]] = {}
    for row in Builds(Table.open(place)).of_intervals(intervals):
        attempts.setdefault(row.interval, []).append(row)
    runs: dict[str, list[BuildRow]] = {}
    for rows in attempts.values():
        newest = keep_newest_attempt(rows)
        if newest[0].run != run and any(is_offered(manifest, row) for row in newest):
            runs.setdefault(newest[0].run, []).extend(newest)
    found: dict[str, AwaitedApproval] = {}
    for rows in runs.values():
        offered = filter_unpublished(manifest, list_candidates(pipeline, layout, rows))
        found |= find_awaited(manifest, offered, now=datetime.now(UTC))
    return found


def is_offered(manifest: Manifest, row: BuildRow) -> bool:
    """Return whether an attempt may replace what is published now, and has not done so."""
    current = manifest.published.get((row.view, row.interval))
    published = current.generation if current else ""
    return published == row.expected and published != row.generation
