"""What new versions of views have to be built of, by the log and the manifest as they are now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from seamline.lake.publish.planning import estimate_plan_cost, plan_run
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.revision.revision_plan import RebuildSize


def has_log(layout: Layout) -> bool:
    """Return whether a pipeline has a log here."""
    return Table.exists(layout.table("master"))


def size_rebuild(pipeline: CompiledPipeline, layout: Layout, versions: Collection[str]) -> RebuildSize:
    """Size what some versions (``name/fingerprint``) lack, which may not be born yet; nothing is written."""
    plan = plan_run(pipeline, layout, asked=None, dirty=True, bounded=False, waits=False)
    published = manifest_of(layout).published
    lacking = {
        version: [each for each in plan.builds if (version, each.interval.id) not in published]
        for version in versions
    }
    wanted = {each.interval.id for builds in lacking.values() for each in builds}
    builds = tuple(replace(each, bytes=0) for each in plan.builds if each.interval.id in wanted)
    bare = replace(plan, builds=builds, bytes=0, seconds=None, left_out=(), unnamed=0)
    sized = estimate_plan_cost(bare, layout, pipeline.grid, add_live_versions(pipeline, layout).views)
    return RebuildSize(sized, {version: len(builds) for version, builds in lacking.items()})
