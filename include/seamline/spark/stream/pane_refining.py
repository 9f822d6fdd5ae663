"""The panes of a stream's slices, made as short as the time zones' rules of this process demand."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.lake.tables.slices import Slices
from seamline.lake.tables.stored_panes import (
    PANE,
    commit_pane_length,
    list_coarse_stretches,
    use_stored_panes,
    withdraw_coarse_intervals,
)
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.reached_intervals import find_spanning_views, list_filled_intervals

log = logging.getLogger("seamline.stream")


def refine_panes(
    layout: Layout, pipeline: CompiledPipeline, slices: Mapping[str, Slices], *, held: int
) -> CompiledPipeline:
    """Refine the panes of ``slices``, by view id; days stored in longer ones are withdrawn, and built again.

    Returns the pipeline with the panes that are stored from here on. ``held`` is the newest epoch of the master.
    """
    kept = {id: each.table.txn(PANE) for id, each in slices.items()}
    pipeline = use_stored_panes(pipeline, lambda view: kept[view.id])
    short = [view for view in pipeline.views if list_coarse_stretches(view, kept[view.id])]
    if short:
        with_rows = {id for epoch in read_reprocessed_log(pipeline, layout) for id in epoch.accepted}
        spanning = find_spanning_views(pipeline.grid, short)
        told = ManifestTable.ensure(layout).decide(
            lambda manifest: [
                each
                for view in short
                for each in withdraw_coarse_intervals(
                    manifest,
                    view,
                    kept[view.id],
                    sorted(list_filled_intervals(pipeline.grid, spanning.get(view.id), with_rows)),
                    pipeline.grid,
                    held,
                )
            ]
        )
        log.warning(
            "The rules of time zones have changed: %s intervals must be built again",
            len({each.interval for each in told}),
        )
    for view in pipeline.views:
        slices[view.id].view = view
        commit_pane_length(slices[view.id].table, view)
    return pipeline
