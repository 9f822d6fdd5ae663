"""Versions of views as the manifest has them now: which run, and which one is served."""

from __future__ import annotations

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import find_version_id, manifest_of
from seamline.lake.tables.stored_panes import read_pane_length, use_stored_panes
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.live_versions import live_views
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import NotFound


def add_live_versions(pipeline: CompiledPipeline, layout: Layout) -> CompiledPipeline:
    """Add the versions that the manifest calls live to a definition's own views, which come first."""
    found = live_views(pipeline, manifest_of(layout))
    return use_stored_panes(found, lambda view: read_pane_length(layout, view))


def find_view(pipeline: CompiledPipeline, layout: Layout, view_name: str) -> CompiledView:
    """Find a view by name: the definition's, or one that it no longer has and that is still served; NotFound."""
    if view := pipeline.view(view_name):
        return view
    manifest = manifest_of(layout)
    if view_name in manifest.serving:
        return resolve_view_version(pipeline, manifest, manifest.serving[view_name])[1]
    names = ", ".join(view.qualified for view in pipeline.views)
    asked = f"{pipeline.name}.{view_name}" if view_name else pipeline.name
    raise NotFound(f"There is no view {asked!r}.", hint=f"available: {names}.")


def find_served_version(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, version: str = ""
) -> tuple[CompiledPipeline, CompiledView]:
    """Find what answers under the view's name, or the version of that fingerprint, and its pipeline.

    Raises NotFound for a version that was never born, ProtocolError if it cannot be made from its stored definition.
    """
    manifest = manifest_of(layout)
    id = find_version_id(manifest, view, version)
    if version and id not in manifest.definitions and id not in [each.id for each in pipeline.views]:
        raise NotFound(
            f"{view.qualified} has no version {version!r}.",
            hint="`seamline status` lists its versions.",
        )
    return resolve_view_version(pipeline, manifest, id)
