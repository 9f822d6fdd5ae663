"""The merged read: what counts of generations and slices, merged into the windows that are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.pane_ranges import (
    Span,
    extend_bounds_back,
    extend_bounds_forward,
    list_starting_intervals,
    merge_bounds,
    parse_interval_ids,
    to_unix_micros,
)
from seamline.lake.engine.windowing import merge_into_windows
from seamline.lake.log.pinned_log import forget_past
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.answering_files import Unsettled
from seamline.lake.read.answers import Answer
from seamline.lake.read.counted_states import compile_key_condition, read_counted_states
from seamline.lake.read.decorations import add_lookup_columns
from seamline.lake.read.presentation import present_windows
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.read.standings import ways_of
from seamline.lake.storage.kept.table_reading import expect_news, read_side_by_side
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import OutOfStep, ReadUnstable, StoreRefused, StoreUnavailable
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import parse_moment
from seamline.model.time.window_arithmetic import Bounds, Gaps
from seamline.model.time.zone_clock import MICROSECOND
from seamline.runtime.deadline import in_time
from seamline.runtime.storage_failures import disk_full, store_failed

ATTEMPTS = 8
EVERYTHING = ReadRequest()
T = TypeVar("T")


def read_merged_answer(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    request: ReadRequest = EVERYTHING,
    *,
    touched: Collection[str] | None = None,
) -> Answer:
    """Answer a question to a view, by the version that is served unless it names another.

    With ``touched`` only for windows that start in intervals in which rows of the touched ones may have changed
    anything; the answer names these intervals.
    Pins, reads, and pins again where a table was cleaned up meanwhile; ReadUnstable after several attempts.
    """
    where, side, span = request.where, request.side, Span.between(request.start, request.end)

    def once() -> Answer:
        with read_side_by_side((layout, view.name, request.side)):
            return answer_once()

    def answer_once() -> Answer:
        snapshot = Snapshot.pin(pipeline, view, layout, request)
        asked_of = span
        if touched is not None:
            asked_of = replace(
                span, intervals=find_changed_intervals(snapshot, parse_interval_ids(touched), side)
            )
        read = partial(read_snapshot_answer, snapshot=snapshot, span=asked_of, side=side, where=where)
        # What has been touched is asked for once.
        question = (layout, snapshot.view.id, asked_of, side, where)
        found = read() if touched is not None else REMEMBERED.answer(question, snapshot, read)
        whole = add_lookup_columns(found, snapshot.view, layout)
        return whole.only(request.phases) if request.phases else whole

    return retry_unstable_read(view, once)


def retry_unstable_read(view: CompiledView, once: Callable[[], T]) -> T:
    """Retry ``once``, which pins again each time, while tables move under it; ReadUnstable after several attempts."""
    last: Exception | None = None
    for attempt in in_time(range(ATTEMPTS)):
        try:
            return once()
        except StoreRefused:
            raise
        except (
            Unsettled,
            OutOfStep,
            DeltaError,
            duckdb.IOException,
            OSError,
        ) as problem:
            if full := disk_full(problem):
                raise full from problem
            if isinstance(problem, OSError) and not isinstance(problem, FileNotFoundError | StoreUnavailable):
                raise
            last = problem
            expect_news()
            if isinstance(problem, FileNotFoundError):
                forget_past()
            time.sleep(0.02 * 2**attempt)
    if isinstance(last, OutOfStep):
        raise last
    if last and (failed := store_failed(last)):
        raise failed from last
    raise ReadUnstable(
        f"The tables of {view.qualified} changed during each of {ATTEMPTS} reads; the last: {last}",
        hint="read again; if the error persists, a file or a generation is missing: run upkeep.",
    ) from last


def find_changed_intervals(snapshot: Snapshot, touched: frozenset[int], side: Side) -> frozenset[int]:
    """List the intervals in which windows start that touch the given ones: sessions are followed backwards."""
    view, length = snapshot.view, snapshot.grid.length // MICROSECOND
    if not isinstance(view.windows, Gaps) or not touched:
        return list_starting_intervals(view, touched, None)
    panes = merge_bounds(view.windows.panes(at, at + length) for at in touched)
    found, _, _ = read_windows(snapshot, panes, side, None, extend_bounds_back)
    return list_starting_intervals(view, touched, found)


def read_snapshot_answer(*, snapshot: Snapshot, span: Span, side: Side, where: str | None) -> Answer:
    """Answer from what is pinned."""
    return read_snapshot(snapshot, span, side, where)[0]


def read_snapshot(
    snapshot: Snapshot, span: Span, side: Side, where: str | None = None
) -> tuple[Answer, pa.Table]:
    """Answer from what is pinned, and return the states that count; Unsettled if it does not fit together."""
    found, taken, panes = read_windows(
        snapshot, span.panes(snapshot.view), side, where, extend_bounds_forward
    )
    asked = filter_windows(snapshot.view, span.of(snapshot.view, found), where)
    ways = ways_of(snapshot, taken, panes, side)
    answer = present_windows(snapshot, asked, ways, side, span.intervals)
    return answer, keep_counted_states(snapshot, taken, side)


def read_windows(
    snapshot: Snapshot,
    panes: list[Bounds],
    side: Side,
    where: str | None,
    beyond: Callable[[CompiledView, pa.Table, Sequence[Bounds], int], list[Bounds] | None],
) -> tuple[pa.Table, pa.Table, list[Bounds]]:
    """Read panes and merge them into windows, again with wider bounds while a session may go on ``beyond``.

    Returns the windows, the states they were made of, and the bounds.
    """
    for attempt in in_time(count()):
        taken = read_counted_states(snapshot, panes, side, where)
        found = merge_into_windows(
            snapshot.view, add_carried_columns(keep_counted_states(snapshot, taken, side))
        )
        wider = beyond(snapshot.view, found, panes, min(attempt, 16))
        if wider is None:
            break
        panes = wider
    return found, taken, panes


def keep_counted_states(snapshot: Snapshot, taken: pa.Table, side: Side) -> pa.Table:
    """Keep the states that count: of an owned view a generation answers for its interval whole."""
    if not snapshot.view.counts or side is Side.SPEED:
        return taken
    owned = [
        to_unix_micros(parse_moment(id))
        for view, id in snapshot.manifest.published
        if view == snapshot.view.id and snapshot.generation(id)
    ]
    spare = pc.and_(taken["_speed"], pc.is_in(taken["_at"], pa.array(owned, pa.int64())))
    return taken.filter(pc.invert(spare))


def add_carried_columns(taken: pa.Table) -> pa.Table:
    """Add the columns that windows carry along (``windowing.COUNTED``) to the states."""
    speed = taken["_speed"].cast(pa.int64())
    newest = pc.fill_null(taken["from_epoch"], -1)
    kept = taken.drop_columns(["_at", "from_epoch", "to_epoch", "_speed"])
    return kept.append_column("_speed", pc.multiply(taken["rows"], speed)).append_column("_newest", newest)


def filter_windows(view: CompiledView, found: pa.Table, where: str | None) -> pa.Table:
    """Keep the windows' rows that meet a condition on keys and grouping set, where states could not be chosen."""
    if not where or not view.grouped:
        return found
    return query_tables(
        f"SELECT * FROM windows WHERE {compile_key_condition(where, view)}", windows=found
    ).cast(found.schema)
