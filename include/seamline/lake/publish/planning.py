"""Plans of batch runs, made from the ledger and the manifest as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from seamline.lake.joins.restatements import read_restated
from seamline.lake.publish.awaited_builds import read_awaited
from seamline.lake.publish.derived_changes import find_reach_ahead, read_derived_arrivals
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.claims_table import claims_of, claims_shown
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import read_split_log
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.manifest import Manifest
from seamline.model.time.intervals import EPOCH, Grid, Interval, merge_intervals
from seamline.model.time.reached_intervals import find_spanning_views
from seamline.model.time.window_arithmetic import count_reached_intervals
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.batch_plan import BatchPlan, add_left_out, bound_plan, plan_batch
from seamline.plan.batch.estimates import Attempt, MasterFile, add_cost_estimates
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs, records_of
from seamline.plan.publish.awaited_approvals import AwaitedApproval, count_as_published

FAR = datetime.max.replace(tzinfo=UTC)
SMALL = 64 << 20
"""Bytes of the log's files."""


def plan_run(
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    asked: Interval | None,
    dirty: bool,
    run: str = "",
    bounded: bool = True,
    waits: bool = True,
) -> BatchPlan:
    """Plan a run of all live versions over the intervals in ``asked``, over the dirty ones, or over both.

    Nothing is written, no table made. ``run`` is who plans: its own claims do not stop it. Dirty intervals are as
    many as the definition lets a run take (``max_dirty``), all of them if not ``bounded``. Who only shows a plan
    does not wait (``waits``): what another place may have let go is then running. What is built and waits for
    approval of how much it changes is not built again while nothing has changed, unless it is in ``asked`` or ``run``
    has built it itself.
    """
    held = claims_of(layout, now=datetime.now(UTC)) if waits else claims_shown(layout)
    claims, manifest = [each for each in held if each.run != run], manifest_of(layout)
    live, reaches = add_live_versions(pipeline, layout).views, reaches_of(pipeline, layout)

    def plan_on(state: Manifest) -> BatchPlan:
        epochs = read_split_log(pipeline, layout, state, live)
        plan = plan_batch(
            epochs,
            state,
            pipeline.grid,
            [view.id for view in live],
            asked=asked,
            dirty=dirty,
            restated=read_restated(pipeline, layout, epochs),
            claims=claims,
            provisional=pipeline.definition.batch.provisional,
            reaches=reaches,
            ahead=find_reach_ahead(pipeline, layout),
            derived=read_derived_arrivals(pipeline, layout, epochs),
            spanning=find_spanning_views(pipeline.grid, live),
        )
        waiting = list_outdated_epochs(epochs, pipeline.record_version, (), until=plan.cut)
        return replace(plan, again=sum(map(records_of, waiting)))

    plan, awaited = plan_on(manifest), dict[str, AwaitedApproval]()
    if dirty and pipeline.definition.batch.approve_change:
        debts = [each.interval.id for each in plan.builds if not each.asked]
        awaited |= read_awaited(pipeline, layout, manifest, debts, run=run)
        plan = plan_on(count_as_published(manifest, awaited)) if awaited else plan
    plan = bound_plan(plan, pipeline.definition.batch.max_dirty if bounded else None)
    plan = add_left_out(plan, {id: each.reason for id, each in awaited.items()}, pipeline.grid)
    return estimate_plan_cost(plan, layout, pipeline.grid, live)


def reaches_of(pipeline: CompiledPipeline, layout: Layout) -> dict[str, int]:
    """Return by live version how many intervals further than an event's own its windows reach."""
    return {
        view.id: count_reached_intervals(view.windows, view.interval // MICROSECOND)
        for view in add_live_versions(pipeline, layout).views
    }


def read_spanning_views(pipeline: CompiledPipeline, layout: Layout) -> dict[str, CompiledView]:
    """Return by id the live versions whose rows of an interval are emitted because of rows of earlier ones."""
    return find_spanning_views(pipeline.grid, add_live_versions(pipeline, layout).views)


def estimate_plan_cost(
    plan: BatchPlan, layout: Layout, grid: Grid, views: Collection[CompiledView]
) -> BatchPlan:
    """Add what is known of a plan's cost: bytes by the master's files, seconds by past builds."""
    if not plan.builds:
        return plan
    return add_cost_estimates(plan, master_files(layout), list_build_attempts(layout), grid, views)


def job_of(
    pipeline: CompiledPipeline, plan: BatchPlan, *, run: str, reason: str = "", actor: str = ""
) -> BuildJob:
    """Return the build that a plan asks for; its ``spans`` are empty if there is nothing to build."""
    joined = merge_intervals(build.interval for build in plan.builds)
    why = reason or format_build_reasons(plan)
    return BuildJob(pipeline.name, run, plan.cut, tuple(joined), why, plan.planned, actor)


def format_build_reasons(plan: BatchPlan) -> str:
    """Describe why a plan builds what it builds, in one line."""
    kinds = Counter(kind for build in plan.builds for kind in build.kinds)
    return ", ".join(kind if len(kinds) == 1 else f"{kind} ({count})" for kind, count in kinds.items())


def is_small_build(layout: Layout, job: BuildJob) -> bool:
    """Return whether a build may have to read a few files only: its driver ends soon after it has started."""
    met = (
        each.size
        for each in master_files(layout)
        if each.epoch <= job.cut
        and any(each.first < span.end and span.start <= each.last for span in job.spans)
    )
    return sum(met) <= SMALL


def master_files(layout: Layout) -> Iterator[MasterFile]:
    """List the master's files by their statistics; one without any may contain all times."""
    files = read_cached_table(layout.table("master"), "files", Files.of)
    if files is None or not files.actions.num_rows:
        return
    columns = (files.low("_event_time"), files.high("_event_time"), files.low("_epoch"))
    sizes = files.actions["size_bytes"].to_pylist()
    for size, first, last, epoch in zip(sizes, *(each.to_pylist() for each in columns), strict=True):
        yield MasterFile(size, first or EPOCH, last or FAR, epoch or 0)


def list_build_attempts(layout: Layout) -> list[Attempt]:
    """List the newest attempts at building; none if nothing was ever built."""
    place = layout.table("builds")
    return Builds(Table.open(place)).attempts() if Table.exists(place) else []
