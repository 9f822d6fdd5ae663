"""In what panes a version of a view is kept, and what becomes of days that a newer tzdata cuts finer.

The slices say the length of the panes of all that is kept. Whoever makes states makes them no longer, whatever its own
rules of the zone; one whose rules want shorter ones where days were read cannot answer from what is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import ProtocolError
from seamline.model.protocol.manifest import Act, Manifest, Statement
from seamline.model.time.intervals import EPOCH, Grid, Interval, format_utc_instant
from seamline.model.time.window_arithmetic import Bounds, Ruling
from seamline.model.time.zone_clock import MICROSECOND

PANE = "seamline.pane"
"""App id in the slices of a version: microseconds of the longest pane in them, and in its generations."""


def pane_length_mark(view: CompiledView) -> dict[str, int]:
    """Return the mark of a version that begins."""
    return {PANE: view.pane // MICROSECOND}


def read_pane_length(layout: Layout, view: CompiledView) -> int | None:
    """Read the length of a version's stored panes; None if it is not recorded."""
    found: int | None = read_cached_table(layout.slices(view), PANE, lambda table: table.txn(PANE))
    return found


def use_stored_panes(
    pipeline: CompiledPipeline, kept: Callable[[CompiledView], int | None]
) -> CompiledPipeline:
    """Shorten the panes of views as far as their stored panes demand."""
    return replace(pipeline, views=tuple(shorten_panes(view, kept(view)) for view in pipeline.views))


def shorten_panes(view: CompiledView, kept: int | None) -> CompiledView:
    """Shorten a view's panes where what is kept has shorter ones: this process has an older tzdata than another had."""
    own = view.pane // MICROSECOND
    both = math.gcd(own, kept or 0)
    return view if both == own else replace(view, pane=both * MICROSECOND)


def list_coarse_stretches(view: CompiledView, kept: int | None) -> list[Bounds]:
    """List the stretches of time in which borders of windows lie within panes that are kept."""
    if kept is None or not isinstance(view.windows, Ruling) or (view.pane // MICROSECOND) % kept == 0:
        return []
    return view.windows.within(kept)


def require_fine(layout: Layout, view: CompiledView, read: datetime) -> None:
    """Raise ProtocolError if windows cannot be made of the panes of days that were read before an instant."""
    kept = read_pane_length(layout, view)
    ahead = (read - EPOCH) // MICROSECOND
    first = min((low for low, _ in list_coarse_stretches(view, kept) if low < ahead), default=None)
    if first is not None and kept is not None:
        raise ProtocolError(
            f"{view.qualified} is stored in panes of {kept * MICROSECOND}, but its time zone, as this process knows "
            f"it, needs finer ones from {format_instant(first)} on.",
            hint="restart the stream with this tzdata: it has those days built again.",
        )


def format_instant(instant: int) -> str:
    """Format an instant; the beginning of all where it is none."""
    return format_utc_instant(EPOCH + instant * MICROSECOND) if abs(instant) < 2**57 else "the beginning"


def withdraw_coarse_intervals(
    manifest: Manifest, view: CompiledView, kept: int | None, intervals: Iterable[str], grid: Grid, held: int
) -> list[Statement]:
    """Let intervals with rows up to ``held``, whose panes are too long, be built before they are answered again."""
    stretches = list_coarse_stretches(view, kept)
    mine = [each for each in intervals if stretches and is_in_stretches(grid.named(each), stretches)]
    facts = {"reason": "the zone's rules have changed", "at": datetime.now(UTC)}
    gone = [
        Statement(Act.WITHDRAW, view.id, cut, interval, name, **facts)  # type: ignore[arg-type]
        for interval in mine
        for name, cut in sorted(
            {each.generation: each.epoch for each in manifest.history.get((view.id, interval), ())}.items()
        )
        if (view.id, interval, name) not in manifest.forgotten
    ]
    return gone + [Statement(Act.FLOOR, view.id, held, each, **facts) for each in mine]  # type: ignore[arg-type]


def is_in_stretches(interval: Interval, stretches: Sequence[Bounds]) -> bool:
    """Return whether an interval has an instant of some stretch."""
    start, end = ((each - EPOCH) // MICROSECOND for each in (interval.start, interval.end))
    return any(low < end and start < high for low, high in stretches)


def commit_pane_length(table: Table, view: CompiledView) -> None:
    """Say in what panes a version is kept from now on, unless its slices say so already."""
    if table.txn(PANE) != view.pane // MICROSECOND:
        table.append([], txns=pane_length_mark(view))
