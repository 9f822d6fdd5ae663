"""What epochs that a view of a process lacks have changed in what is emitted: folded before them, and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seamline.lake.engine import states
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.span_rows import find_mark, micros_of_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.functions.folding import ALWAYS
from seamline.model.time.intervals import EPOCH, Interval, parse_moment
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.tasks.folded_rows import fold_rows
from seamline.spark.tasks.measures import compute_states, floor_to_span

CELL = "_cell"
Restate = Callable[[DataFrame, Interval], DataFrame]
"""Returns rows of a span as decisions have them."""


def compute_missed_states(
    rows: DataFrame,
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    restate: Restate,
    *,
    after: int,
    until: int,
) -> pa.Table:
    """Compute the states (``partial_schema``) of ``after < epoch <= until``, as one set: no cut is between them.

    The rows that are folded are those of whole intervals, or of whole spans where those are longer.
    """
    process = view.process
    assert process
    before, now = (micros_of_mark(find_mark(pipeline, layout, number)) for number in (after, until))
    memory = pipeline.definition.stream.worker_memory
    filled = {
        to_unix_micros(parse_moment(id))
        for epoch in read_reprocessed_log(pipeline, layout)
        for id in epoch.accepted
    }
    touched = list_touched_rows(rows, view, filled, before, now, after=after, until=until)
    near = restate_near(touched, restate)
    near = near.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        made = []
        for number, mark in ((until, now), (after, before)):
            known = near.where(f.col("_epoch") <= number)
            emitted = fold_rows(known, process, mark, side=view.side, memory=memory)
            made.append(compute_states(emitted, view, memory=memory).toArrow())
    finally:
        near.unpersist()
    return states.drop_zeros(
        view, states.combine_states(view, [made[0], states.negate_states(view, made[1])])
    )


def list_touched_rows(
    rows: DataFrame,
    view: CompiledView,
    filled: Iterable[int],
    before: float,
    now: float,
    *,
    after: int,
    until: int,
) -> DataFrame:
    """Return the rows up to an epoch of all intervals, or longer spans, whose emitted rows may have changed.

    Those of new rows, and those that the watermark has passed or entered. By whole intervals, as a restatement moves
    rows to other keys and spans, but into no other interval. ``filled`` are the starts of those that have rows.
    """
    length = max(view.interval, view.span)
    size = length // MICROSECOND
    new = rows.where((f.col("_epoch") > after) & (f.col("_epoch") <= until))
    cells = new.select(floor_to_span("_event_time", length).alias(CELL)).distinct()
    starts = {to_unix_micros(each) for each in cells.toArrow()[CELL].to_pylist()}
    if before > ALWAYS and now > before:
        passed = range(int(before) // size * size, int(now) + 1, size)
        starts |= {at // size * size for at in filled if at // size * size in passed}
    known = rows.where(f.col("_epoch") <= until)
    if before == ALWAYS:
        return known
    if not starts:
        return known.where(f.lit(False))
    first, end = (f.lit(EPOCH + at * MICROSECOND) for at in (min(starts), max(starts) + size))
    near = known.where((f.col("_event_time") >= first) & (f.col("_event_time") < end))
    cell = f.unix_micros(floor_to_span("_event_time", length))
    return near.where(cell.isin(sorted(starts)))


def restate_near(near: DataFrame, restate: Restate) -> DataFrame:
    """Return rows as decisions have them."""
    bounds = near.agg(f.min("_event_time").alias("first"), f.max("_event_time").alias("last")).toArrow()
    first, last = bounds["first"][0].as_py(), bounds["last"][0].as_py()
    return near if first is None else restate(near, Interval(first, last + MICROSECOND))
