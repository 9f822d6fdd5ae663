"""What epochs that a view of a process lacks have changed in what is emitted: folded before them, and after."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seamline.lake.engine import states
from seamline.lake.joins.span_rows import SPAN, find_mark, micros_of_mark
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.functions.folding import ALWAYS
from seamline.model.time.intervals import Interval
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.tasks.folded_rows import fold_rows, span_of
from seamline.spark.tasks.measures import compute_states, quote_column

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

    The rows that are folded are those of the spans over which the watermark has gone, and of the spans of keys that
    have new rows.
    """
    process = view.process
    assert process
    before, now = (micros_of_mark(find_mark(pipeline, layout, number)) for number in (after, until))
    memory = pipeline.definition.stream.worker_memory
    near = restate_near(list_touched_rows(rows, view, before, after=after, until=until), restate)
    made = []
    for until_epoch, mark in ((until, now), (after, before)):
        emitted = fold_rows(
            near.where(f.col("_epoch") <= until_epoch), process, mark, side=view.side, memory=memory
        )
        made.append(compute_states(emitted, view, memory=memory).toArrow())
    return states.drop_zeros(
        view, states.combine_states(view, [made[0], states.negate_states(view, made[1])])
    )


def list_touched_rows(
    rows: DataFrame, view: CompiledView, mark: float, *, after: int, until: int
) -> DataFrame:
    """Return the rows up to an epoch of which something may be emitted that was not before."""
    process = view.process
    assert process
    known = rows.where(f.col("_epoch") <= until).withColumn(SPAN, span_of(process))
    if mark == ALWAYS:
        return known
    since = f.lit(int(mark) // process.size * process.size)
    keys = [f.col(quote_column(key.name)) for key in process.keys]
    new = known.where((f.col("_epoch") > after) & (f.col(SPAN) < since)).select(SPAN, *keys).distinct()
    one, other = known.where(f.col(SPAN) < since).alias("one"), new.alias("other")
    names = [SPAN, *(quote_column(key.name) for key in process.keys)]
    same = f.lit(True)
    for name in names:
        same = same & f.col(f"one.{name}").eqNullSafe(f.col(f"other.{name}"))
    return known.where(f.col(SPAN) >= since).unionByName(one.join(other, same, "left_semi").select("one.*"))


def restate_near(near: DataFrame, restate: Restate) -> DataFrame:
    """Return rows as decisions have them."""
    near = near.drop(SPAN)
    bounds = near.agg(f.min("_event_time").alias("first"), f.max("_event_time").alias("last")).toArrow()
    first, last = bounds["first"][0].as_py(), bounds["last"][0].as_py()
    return near if first is None else restate(near, Interval(first, last + MICROSECOND))
