"""How far a serving table has come, by its own word, and what it lacks."""

from __future__ import annotations

from datetime import timedelta

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.log_lines import SERVED, SHOWN
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.manifest_table import manifest_of
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.stream.serving_refresh import ServingLack, list_changed_intervals, list_published_intervals

STEP = 10_000
"""Epochs that one refresh makes up for at most; the next goes on from there."""


def read_serving_lag(layout: Layout, grid: Grid, view: CompiledView, table: Table) -> ServingLack:
    """Compare a serving table with the ledger and the manifest.

    A process that was killed before a refresh, or a view that has caught up, leaves intervals that no later row
    may ever touch: what is missing is seen from the tables alone, so whoever refreshes next adds it. A table
    that has shown a later manifest than there is lacks everything: one was brought back, which does not know of that.
    """
    manifest = manifest_of(layout)
    since, shown = table.txn(SERVED), table.txn(SHOWN)
    if since is None or shown is None or shown > manifest.version:
        return ServingLack(None, NOTHING, manifest.version)
    rows = read_later_epochs(layout, view, since)
    told = (*manifest.published.values(), *manifest.withdrawn.values())
    fresh = list_published_intervals(told, view.id, shown)
    found = (
        list_changed_intervals(rows, since, grid, view, gap_of(view))
        if since > NOTHING or rows
        else frozenset()
    )
    return ServingLack(
        None if found is None else found | fresh, rows[-1].number if rows else since, manifest.version
    )


def read_later_epochs(layout: Layout, view: CompiledView, since: int) -> tuple[Epoch, ...]:
    """Read the ledger's rows from ``since`` on, as far as the view's slices are complete; a step of them at most."""

    def reach(master: Table) -> int:
        return min(Master(master).epoch, Master(master).frontier(view.id))

    until = read_cached_table(layout.table("master"), ("reach", view.id), reach)
    if until is None:
        return ()
    key = ("later", since, until)
    return (
        read_cached_table(
            layout.table("ledger"), key, lambda table: read_next_epochs(Ledger(table), since, until)
        )
        or ()
    )


def read_next_epochs(ledger: Ledger, since: int, until: int) -> tuple[Epoch, ...]:
    """Read the row of ``since`` and of the first epochs above it, up to ``until``."""
    ahead = [number for number in ledger.read_sizes(since, STEP) if number <= until]
    return tuple(ledger.read_after(since - 1, max(ahead, default=since)))


def gap_of(view: CompiledView) -> timedelta:
    """Return how long after its last event a window ends."""
    return view.windows.gap * MICROSECOND if isinstance(view.windows, Gaps) else timedelta(0)
