"""What the builds of a plan would change of published numbers: late rows, corrected look-ups, decisions."""

from __future__ import annotations

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.batch.batch_plan import BatchPlan
from seamline.plan.revision.preview import ViewPreview
from seamline.serve.previews.view_preview import Wanted, preview_view


def preview_plan(
    pipeline: CompiledPipeline, layout: Layout, plan: BatchPlan, *, sample: int, examples: bool
) -> tuple[ViewPreview, ...]:
    """Compare what is published of the served versions with what a plan's builds would make."""
    if not plan.builds:
        return ()
    weights = {each.interval.id: each.late for each in plan.builds}
    wanted = Wanted(sample, examples, cut=plan.cut, weights=weights)
    found = []
    for name in sorted(manifest_of(layout).serving):
        owner, view = find_served_version(pipeline, layout, find_view(pipeline, layout, name))
        found.append(preview_view(owner, view, layout, wanted))
    return tuple(found)
