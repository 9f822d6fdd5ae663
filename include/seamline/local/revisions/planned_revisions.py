"""A change of definitions with its cost, and what it would change of published numbers, where there is a warehouse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from seamline.lake.storage.layout import Layout, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.local.revisions.loaded_revisions import compare_with_revision
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import NotFound
from seamline.plan.revision.definition_diff import PipelineChange, ViewChange, ViewChangeKind
from seamline.plan.revision.preview import ViewPreview
from seamline.plan.revision.revision_plan import PlannedChange, RevisionPlan
from seamline.serve.previews.rebuild_size import has_log, size_rebuild
from seamline.serve.previews.view_preview import Wanted, preview_view

NO_LOG = "no log of it is in the warehouse that SEAMLINE_WAREHOUSE names"


def plan_revision(
    folder: Path, asked: str, *, only: str = "", preview: bool = False, sample: int = 5, examples: bool = True
) -> RevisionPlan:
    """Plan what changes in the definitions of a folder since a revision, of all pipelines or one.

    Raises NotFound for a revision or a pipeline that is in neither, SetupError outside git.
    """
    found = compare_with_revision(folder, asked)
    diff = found.diff
    if only:
        diff = replace(diff, pipelines=tuple(each for each in diff.pipelines if each.name == only))
        if only not in found.names:
            raise NotFound(
                f"There is no pipeline {only!r}, and there was none.",
                hint=f"available: {', '.join(found.names) or 'none'}.",
            )
    wanted = Wanted(sample, examples) if preview else None
    planned = tuple(plan_pipeline_change(folder, each, wanted) for each in diff.pipelines)
    return RevisionPlan(str(found.base), diff, planned, found.notes)


def plan_pipeline_change(folder: Path, change: PipelineChange, wanted: Wanted | None) -> PlannedChange:
    """Size what a pipeline's new versions need, and preview them if that is ``wanted``."""
    if not change.built:
        return PlannedChange(change)
    layout = require_format(locate_tables(change.name))
    if not has_log(layout):
        return PlannedChange(change, unknown=NO_LOG)
    if change.intervals:
        return PlannedChange(change, unknown="the log counts its rows by other intervals")
    pipeline = load_pipeline(folder, change.name)
    size = size_rebuild(pipeline, layout, change.built)
    previews = (
        tuple(
            preview_change(pipeline, each, layout, wanted)
            for each in change.views
            if each.built and each.kind is not ViewChangeKind.ADDED
        )
        if wanted
        else ()
    )
    return PlannedChange(change, size, previews=previews)


def preview_change(
    pipeline: CompiledPipeline, change: ViewChange, layout: Layout, wanted: Wanted
) -> ViewPreview:
    """Compare what is published of a view with what its new version would make."""
    view = next(each for each in pipeline.views if each.id == change.after)
    return preview_view(pipeline, view, layout, wanted, served=change.before.partition("/")[0])
