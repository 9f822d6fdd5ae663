"""Which generations of a run change answers by so much that a person must approve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.publish.number_changes import describe_unapproved_change


def find_unapproved(
    pipeline: CompiledPipeline, layout: Layout, builds: Sequence[BuildRow]
) -> Mapping[tuple[str, str], str]:
    """Find out why generations wait, by view version and interval id; nothing without a limit (``approve_change``).

    What replaces nothing changes no published number, and of count windows the two layers are not compared.
    """
    limit = pipeline.definition.batch.approve_change
    if not limit:
        return {}
    counted = {view.id for view in add_live_versions(pipeline, layout).views if view.counts}
    rows = [row for row in builds if row.expected and row.view not in counted]
    exists = Table.exists(layout.table("comparisons"))
    known = Comparisons.ensure(layout).of_generations({row.generation for row in rows}) if exists else []
    compared = {(each.view, each.interval, each.generation): each for each in known}
    found = {
        (row.view, row.interval): describe_unapproved_change(
            compared.get((row.view, row.interval, row.generation)), limit
        )
        for row in rows
    }
    return {place: why for place, why in found.items() if why}
