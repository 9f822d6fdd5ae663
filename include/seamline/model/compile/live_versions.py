"""Which versions of views run: the definition's own, and those born before that can still be fed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import is_compatible_version
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import DefinitionError, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.user_code import is_stand_in


def live_views(pipeline: CompiledPipeline, manifest: Manifest) -> CompiledPipeline:
    """Add every version that is live to the definition's own, which come first (rule 7).

    Versions that cannot be fed with this definition's rows are left out: see ``stood_still``.
    """
    own = {view.id for view in pipeline.views}
    others = [id for id in manifest.live if id not in own and not why_still(pipeline, manifest, id)]
    added = [resolve_view_version(pipeline, manifest, id)[1] for id in others]
    return replace(pipeline, views=(*pipeline.views, *added))


def stood_still(pipeline: CompiledPipeline, manifest: Manifest) -> Mapping[str, str]:
    """Return the versions that were born and get no more slices, and why: their W stands still."""
    found = {id: why_still(pipeline, manifest, id) for id in manifest.live}
    return {id: why for id, why in found.items() if why}


def why_still(pipeline: CompiledPipeline, manifest: Manifest, id: str) -> str:
    """Say why a born version cannot be fed with the rows that this definition makes; empty if it can."""
    try:
        stored, view = resolve_view_version(pipeline, manifest, id)
    except ProtocolError as problem:
        return problem.message
    if not is_compatible_version(stored.record_version, pipeline.record_version):
        return (
            f"its rows are of record version {stored.record_version}, the kernel's {pipeline.record_version}"
        )
    if view.process and is_stand_in(view.process.function.user):
        return f"the code of {view.process.function.name} has been edited or deleted since"
    if missing := [field.name for field in view.uses if field not in pipeline.record.added]:
        return f"it uses {', '.join(missing)}, which the definition does not add"
    if set(stored.definition.topics) != set(pipeline.definition.topics):
        return f"it reads topic {', '.join(stored.definition.topics)}"
    if stored.grid != pipeline.grid:
        return f"its intervals are of {stored.definition.batch.interval}"
    return ""


def require_grid(pipeline: CompiledPipeline, manifest: Manifest, log: Iterable[Epoch]) -> None:
    """Raise DefinitionError where a log with rows counts them by intervals of another length.

    They are those of the definition whose versions were born last: none is born once this was asked.
    """
    newest = max(manifest.births.values(), default=None)
    counted = {
        stored.definition.batch.interval: stored.grid.length
        for id, birth in manifest.births.items()
        if birth == newest and (stored := find_birth_pipeline(pipeline, manifest, id))
    }
    if not counted or pipeline.grid.length in counted.values() or not any(each.accepted for each in log):
        return
    before = " or ".join(counted)
    raise DefinitionError(
        f"{pipeline.name}: the log counts its rows by intervals of {before}, but batch= has an interval of "
        f"{pipeline.definition.batch.interval}.",
        hint=f"change it back to {before}; to use other intervals, declare a pipeline of another name.",
        field="batch.interval",
    )


def find_birth_pipeline(pipeline: CompiledPipeline, manifest: Manifest, id: str) -> CompiledPipeline | None:
    """Return the pipeline that a version was born with; None where it cannot be made any more."""
    try:
        return resolve_view_version(pipeline, manifest, id)[0]
    except ProtocolError:
        return None


def list_primary_views(pipeline: CompiledPipeline) -> tuple[CompiledView, ...]:
    """Return one version for each name of a view, the definition's own where there is one."""
    first: dict[str, CompiledView] = {}
    for view in pipeline.views:
        first.setdefault(view.name, view)
    return tuple(first.values())
