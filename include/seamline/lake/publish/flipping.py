"""Which version of a view is served: a flip is one manifest commit, then the serving table is written again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from seamline.lake.log.master import Master
from seamline.lake.publish.planning import reaches_of, read_spanning_views
from seamline.lake.read import serving_table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.lake.tables.view_versions import find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.time.reached_intervals import list_filled_intervals
from seamline.plan.batch.build_causes import list_rowless_intervals
from seamline.plan.publish.publication import plan_flip, plan_retirement


def flip_view(pipeline: CompiledPipeline, layout: Layout, view_name: str, *, to: str = "") -> list[Statement]:
    """Serve the version of that fingerprint, or of an unmistakable beginning of one; none written if it is.

    Without ``to`` it is the definition's own. Raise PublishRefused if answers would lack something.
    """
    return flip_views(pipeline, layout, {view_name: to})


def flip_views(pipeline: CompiledPipeline, layout: Layout, wanted: Mapping[str, str]) -> list[Statement]:
    """Serve a version of each of several views by one commit, or of none; fingerprints by view as for ``flip_view``."""
    views = {name: find_view(pipeline, layout, name) for name in wanted}

    def decision(manifest: Manifest) -> list[Statement]:
        epochs = read_reprocessed_log(pipeline, layout)
        with_rows = {each for epoch in epochs for each in epoch.accepted}
        reaches, spanning = reaches_of(pipeline, layout), read_spanning_views(pipeline, layout)
        reached, now = read_version_frontiers(manifest, layout), datetime.now(UTC)
        statements: list[Statement] = []
        for name, to in wanted.items():
            id = find_view_version(manifest, name, to) if to else views[name].id
            filled = list_filled_intervals(pipeline.grid, spanning.get(id), with_rows)
            touched = {
                *filled,
                *list_rowless_intervals(manifest, id, pipeline.grid, filled, reaches.get(id, 0)),
            }
            statements += plan_flip(
                manifest, name, id, intervals_with_rows=touched, frontiers=reached, now=now
            )
        return statements

    statements = ManifestTable.ensure(layout).decide(decision)
    for view in views.values():
        serving_table.refresh_serving_table(pipeline, layout, view, ())
    return statements


def retire_version(
    pipeline: CompiledPipeline, layout: Layout, view_name: str, version: str, *, reason: str
) -> list[Statement]:
    """Let the version of that fingerprint, or of an unmistakable beginning of one, run no more.

    None written if it is retired. Raises PublishRefused for one that is served or declared.
    """
    own = {view.id for view in pipeline.views}

    def decision(manifest: Manifest) -> list[Statement]:
        id = find_view_version(manifest, view_name, version)
        return plan_retirement(manifest, id, own, reason=reason, now=datetime.now(UTC))

    return ManifestTable.ensure(layout).decide(decision)


def find_view_version(manifest: Manifest, view_name: str, to: str) -> str:
    """Find the version of a view whose fingerprint begins so."""
    ids = [id for id in manifest.births if id.startswith(f"{view_name}/{to}")]
    if len(ids) != 1:
        born = ", ".join(id for id in manifest.births if id.startswith(f"{view_name}/")) or "none"
        raise BadRange(
            f"{to!r} matches {len(ids)} versions of {view_name}.", hint=f"versions that were born: {born}."
        )
    return ids[0]


def read_version_frontiers(manifest: Manifest, layout: Layout) -> dict[str, int]:
    """Read W of every version: the master's word, and never below the epoch before its birth."""
    master = Master.open(layout)
    return {id: max(master.frontier(id), birth - 1) for id, birth in manifest.births.items()}
