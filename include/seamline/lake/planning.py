"""Plans of batch runs, made from the ledger and the manifest as they are now."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.lake.control import restatements
from seamline.lake.layout import Layout
from seamline.lake.ledger import Ledger
from seamline.lake.manifest import ManifestTable
from seamline.lake.master import Master
from seamline.lake.tables import Table
from seamline.lake.versions import live
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch
from seamline.model.intervals import Interval, spans
from seamline.model.jobs import BuildJob
from seamline.plan.batch import BatchPlan, plan_batch


def plan_run(pipeline: CompiledPipeline, layout: Layout, *, asked: Interval | None, dirty: bool) -> BatchPlan:
    """Plan a run of all live versions over the intervals in ``asked``, over the dirty ones, or over both."""
    epochs = known_epochs(layout)
    manifest = ManifestTable.ensure(layout).read()
    views = [view.id for view in live(pipeline, layout).views]
    restated = restatements(layout)
    return plan_batch(epochs, manifest, pipeline.grid, views, asked=asked, dirty=dirty, restated=restated)


def job_of(pipeline: CompiledPipeline, plan: BatchPlan, *, run: str, reason: str = "") -> BuildJob:
    """Give the build that a plan asks for; its ``spans`` are empty where there is nothing to build."""
    joined = spans(build.interval for build in plan.builds)
    return BuildJob(pipeline.name, run, plan.cut, tuple(joined), reason or reasons(plan))


def reasons(plan: BatchPlan) -> str:
    """Say why a plan builds what it builds, in one line."""
    kinds: dict[str, int] = {}
    for build in plan.builds:
        kind = "late rows" if build.reason.endswith(("late row", "late rows")) else build.reason
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(kind if len(kinds) == 1 else f"{kind} ({count})" for kind, count in kinds.items())


def known_epochs(layout: Layout) -> Sequence[Epoch]:
    """List every epoch that the master holds, also those that the ledger misses; none before the first."""
    if not Table.exists(layout.table("master")):
        return []
    held = Ledger.ensure(layout).epochs()
    last = held[-1].number if held else -1
    # The master is opened after the ledger was read: an epoch in between is found in one of the two.
    return [*held, *Master.open(layout).missing(last)]
