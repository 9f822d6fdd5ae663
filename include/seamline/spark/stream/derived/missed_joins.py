"""What epochs that a view of a join lacks have added to joined rows, or changed in those of an as-of join."""

from __future__ import annotations

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seamline.lake.engine import states
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.time.intervals import Interval
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.stream.derived.missed_folds import Restate
from seamline.spark.tasks.derived_rows import derive_rows
from seamline.spark.tasks.measures import compute_states


def find_reached_rows(
    rows: DataFrame, join: CompiledJoin, restate: Restate, *, after: int, until: int
) -> DataFrame:
    """Return the rows up to an epoch that those of ``after < epoch <= until`` reach.

    What a left row found before is among them: it says whether it is matched now, or which version it had.
    """
    new = rows.where((f.col("_epoch") > after) & (f.col("_epoch") <= until))
    bounds = new.agg(f.min("_event_time").alias("first"), f.max("_event_time").alias("last")).toArrow()
    first, last = bounds["first"][0].as_py(), bounds["last"][0].as_py()
    if first is None:
        return new
    reach = join.before + join.after
    span = Interval(first - reach, last + reach + MICROSECOND)
    near = rows.where(f.col("_epoch") <= until).where(
        f.col("_event_time").between(f.lit(first - reach), f.lit(last + reach))
    )
    return restate(near, span)


def derive_missing_rows(
    rows: DataFrame, join: CompiledJoin, restate: Restate, *, after: int, until: int
) -> DataFrame:
    """Return the derived rows of ``after < epoch <= until``."""
    near = find_reached_rows(rows, join, restate, after=after, until=until)
    return derive_rows(near, join).where(f.col("_epoch") > after)


def compute_missed_versions(
    rows: DataFrame,
    view: CompiledView,
    join: CompiledJoin,
    restate: Restate,
    *,
    after: int,
    until: int,
    memory: str,
) -> pa.Table:
    """Compute the states (``partial_schema``) of ``after < epoch <= until``, as one set: no cut is between them.

    They are what left rows have at the end, less what they had before. Of left rows at the edge of the reach not all
    versions are read: what they lack is the same before and after.
    """
    near = find_reached_rows(rows, join, restate, after=after, until=until)
    near = near.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        now, before = (
            compute_states(
                derive_rows(near.where(f.col("_epoch") <= number), join), view, memory=memory
            ).toArrow()
            for number in (until, after)
        )
    finally:
        near.unpersist()
    return states.drop_zeros(view, states.combine_states(view, [now, states.negate_states(view, before)]))
