"""Which epochs changed the derived rows of which interval: what the slices say, and above them what may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.engine.states import floor_sql
from seamline.lake.log.pinned_log import log_of
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.batch.batch_plan import last_edge
from seamline.plan.batch.interval_arrivals import (
    Arrivals,
    DerivedArrivals,
    list_reached_changes,
    list_timed_changes,
)


def read_derived_arrivals(
    pipeline: CompiledPipeline, layout: Layout, epochs: Sequence[Epoch]
) -> dict[str, Arrivals]:
    """Return by live version of a view of derived rows which epochs up to the last edge of a log changed its intervals.

    A version whose slices are complete to the edge says so itself; of one that is behind, rows in reach may have.
    """
    edge = last_edge(epochs)
    until = edge.number if edge else NOTHING
    found: dict[str, Arrivals] = {}
    for view in add_live_versions(pipeline, layout).views:
        if view.derived:
            log = read_cached_table(layout.table("master"), ("log", view.id), partial(log_of, view=view))
            if log is not None and log.frontier >= until:
                changes = read_slice_changes(pipeline, view, layout, until)
            else:
                changes = list_possible_changes(epochs, pipeline, view, until)
            found[view.id] = DerivedArrivals(changes)
    return found


def list_possible_changes(
    epochs: Sequence[Epoch], pipeline: CompiledPipeline, view: CompiledView, until: int
) -> Iterator[tuple[str, int, int, int]]:
    """List what may have changed a view's intervals up to an epoch: rows in reach, and of a process watermarks."""
    yield from list_reached_changes(epochs, pipeline.grid, view, until=until)
    if view.process:
        yield from list_timed_changes(epochs, pipeline.grid, view, pipeline.timed.watermark_at, until=until)


def read_slice_changes(
    pipeline: CompiledPipeline, view: CompiledView, layout: Layout, until: int
) -> Iterator[tuple[str, int, int, int]]:
    """Read the interval, the first and last epoch and the rows of each set of slices that begins up to an epoch."""
    slices = read_cached_table(layout.slices(view), "files", Files.of)
    if slices is None or not slices.actions.num_rows:
        return
    rows = states.stored_states_sql(view, slices.paths)
    # What is withdrawn changes an interval as what it adds does.
    counted = "count(*)" if view.netted else "sum(rows)::BIGINT"
    query = (
        f"SELECT {floor_sql('pane', pipeline.grid.length)} AS _interval, from_epoch, to_epoch, {counted} "
        f"FROM {rows} WHERE from_epoch <= {until} GROUP BY ALL"
    )
    for start, first, last, count in connection().sql(query).fetchall():
        yield format_utc_instant(start), first, last, count


def find_reach_ahead(pipeline: CompiledPipeline, layout: Layout) -> timedelta:
    """Return how far behind an interval rows may be that any live view counts in it."""
    return max((view.after for view in add_live_versions(pipeline, layout).views), default=timedelta(0))
