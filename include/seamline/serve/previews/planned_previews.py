"""What the builds of a plan would change of published numbers: late rows, corrected look-ups, decisions."""

from __future__ import annotations

from dataclasses import replace

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import ProtocolError
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
    manifest, limit = manifest_of(layout), pipeline.definition.batch.approve_change
    found = []
    for name, version in sorted(manifest.serving.items()):
        try:
            owner, view = resolve_view_version(pipeline, manifest, version)
        except ProtocolError as problem:
            found.append(ViewPreview(f"{pipeline.name}.{name}", version, version, why=problem.message))
        else:
            # An older version is as it was stored, with the limit of that time.
            found.append(replace(preview_view(owner, view, layout, wanted), limit=limit))
    return tuple(found)
