"""Reads which intervals have generations that wait for a person's approval alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from seamline.lake.publish.asked_approvals import read_asked
from seamline.lake.publish.candidates import filter_unpublished, list_candidates
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

    What ``run`` itself has built does not wait: a run that is cleared builds, and asks, again. Nor does what nobody was
    asked about, as where a run died before it could. Certificates and comparisons are read only of runs that have
    something which stands beside what is published.
    """
    place = layout.table("builds")
    if not (intervals and pipeline.definition.batch.approve_change and Table.exists(place)):
        return {}
    builds = Builds(Table.open(place))
    attempts: dict[str, list[BuildRow]] = {}
    for row in builds.of_intervals(intervals):
        attempts.setdefault(row.interval, []).append(row)
    runs: dict[str, list[BuildRow]] = {}
    for rows in attempts.values():
        newest = keep_newest_attempt(rows)
        if newest[0].run != run and any(is_offered(manifest, row) for row in newest):
            runs.setdefault(newest[0].run, []).extend(newest)
    found: dict[str, AwaitedApproval] = {}
    for name, rows in runs.items():
        # An approval is of what the run has built last; of an attempt before it nothing can be published any more.
        last = {row.generation for row in builds.of(name)} & read_asked(layout, name)
        if own := [row for row in rows if row.generation in last]:
            left = filter_unpublished(manifest, list_candidates(pipeline, layout, own))
            found |= find_awaited(manifest, left, now=datetime.now(UTC))
    return found


def is_offered(manifest: Manifest, row: BuildRow) -> bool:
    """Return whether an attempt may replace what is published now, and has not done so."""
    current = manifest.published.get((row.view, row.interval))
    published = current.generation if current else ""
    return published == row.expected and published != row.generation
