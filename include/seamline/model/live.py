"""Which versions of views run: the definition's own, and those born before that can still be fed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.errors import ProtocolError
from seamline.model.evolution import fits
from seamline.model.manifest import Manifest
from seamline.model.stored import version_of


def live_views(pipeline: CompiledPipeline, manifest: Manifest) -> CompiledPipeline:
    """Add every version that is live to the definition's own, which come first (rule 7).

    Versions that cannot be fed with this definition's rows are left out: see ``stood_still``.
    """
    own = {view.id for view in pipeline.views}
    others = [id for id in manifest.live if id not in own and not why_still(pipeline, manifest, id)]
    added = [version_of(pipeline, manifest, id)[1] for id in others]
    return replace(pipeline, views=(*pipeline.views, *added))


def stood_still(pipeline: CompiledPipeline, manifest: Manifest) -> Mapping[str, str]:
    """Give the versions that were born and get no more slices, and why: their W stands still."""
    found = {id: why_still(pipeline, manifest, id) for id in manifest.live}
    return {id: why for id, why in found.items() if why}


def why_still(pipeline: CompiledPipeline, manifest: Manifest, id: str) -> str:
    """Say why a born version cannot be fed with the rows that this definition makes; empty if it can."""
    try:
        stored, view = version_of(pipeline, manifest, id)
    except ProtocolError as problem:
        return problem.message
    if not fits(stored.record_version, pipeline.record_version):
        return (
            f"its rows are of record version {stored.record_version}, the kernel's {pipeline.record_version}"
        )
    if missing := [field.name for field in view.uses if field not in pipeline.record.added]:
        return f"it uses {', '.join(missing)}, which the definition does not add"
    if stored.definition.source.topics != pipeline.definition.source.topics:
        return f"it reads topic {', '.join(stored.definition.source.topics)}"
    if stored.grid != pipeline.grid:
        return f"its intervals are of {stored.definition.batch.interval}"
    return ""


def foremost(pipeline: CompiledPipeline) -> tuple[CompiledView, ...]:
    """Give one version for each name of a view, the definition's own where there is one."""
    first: dict[str, CompiledView] = {}
    for view in pipeline.views:
        first.setdefault(view.name, view)
    return tuple(first.values())
