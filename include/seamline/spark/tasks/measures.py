"""The general path of view states: an aggregation in Spark over parsed rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.model.compile.compiled_pipeline import NUMBER, CompiledView
from seamline.model.definition.layers import Stream
from seamline.model.time.window_arithmetic import Gaps
from seamline.spark.tasks.aggregates import is_native, measure_state_columns
from seamline.spark.tasks.arrow_states import arrow_states

MICROSECOND = timedelta(microseconds=1)
SESSION = "_session"


def compute_states(
    rows: DataFrame, view: CompiledView, *, by: Sequence[str] = (), memory: str = Stream.worker_memory
) -> DataFrame:
    """Compute the states (``partial_schema``) of rows with the parsed columns, their event time and place.

    ``by`` names further columns of ``rows`` to keep apart; they come first in the result. One measure that
    Spark cannot make has all of them made by the kernel's code, in workers of so much ``memory``.
    """
    if view.changelog or not is_native(view):
        return arrow_states(rows, view, by, memory)
    rows = explode_items(rows, view)
    selected = rows.where(view.where.spark) if view.where else rows
    counted = f.count(f.lit(1)).alias("rows")
    columns = [counted, *(column for state in view.states for column in measure_state_columns(state))]
    named = [quote_column(name) for name in [*by, *(key.name for key in view.keys)]]
    if isinstance(view.windows, Gaps):
        grouped = in_sessions(selected, named, view.windows).groupBy(*map(f.col, named), SESSION)
        moment = f.col("_event_time")
        return grouped.agg(f.min(moment).alias("pane"), f.max(moment).alias("_last"), *columns).drop(SESSION)
    grouped = selected.groupBy(*map(f.col, named), floor_to_span("_event_time", view.pane).alias("pane"))
    return grouped.agg(*columns)


def number_count_windows(rows: DataFrame, view: CompiledView, cell: str) -> DataFrame:
    """Keep the rows that a view of count windows counts, with their window's number within ``cell`` and key."""
    chosen = rows.where(view.where.spark) if view.where else rows
    keys = [quote_column(name) for name in [cell, *(key.name for key in view.ordered_by)]]
    place = f.row_number().over(Window.partitionBy(*map(f.col, keys)).orderBy(*READ_ORDER))
    return chosen.withColumn(NUMBER, f.floor((place - 1) / view.counts).cast("BIGINT") + 1)


def in_sessions(rows: DataFrame, named: Sequence[str], gaps: Gaps) -> DataFrame:
    """Number rows by the session they are in, among those of the same columns; cut at borders of intervals.

    Rows of the same instant get the same number whatever their order: the running total goes over peers.
    """
    ordered = Window.partitionBy(*map(f.col, named)).orderBy("_event_time")
    at, before = f.unix_micros("_event_time"), f.unix_micros(f.lag("_event_time").over(ordered))
    near = (at - before < gaps.gap) & (at - f.pmod(at, f.lit(gaps.interval)) <= before)
    flagged = rows.withColumn("_new", f.when(near, 0).otherwise(1))
    return flagged.withColumn(SESSION, f.sum("_new").over(ordered)).drop("_new")


def explode_items(rows: DataFrame, view: CompiledView) -> DataFrame:
    """Make a row of each item where the view explodes; ``_ordinal`` says which item of its record a row is."""
    if view.explode is None:
        return rows.withColumn("_ordinal", f.lit(0))
    array = f.expr(view.explode.array.spark)
    # The master may have a column of that name, of what records were before.
    kept = rows.drop(*(each.name for each in view.explode.seen))
    items = kept.select("*", f.posexplode(array).alias("_ordinal", view.explode.item.name))
    parts = [
        f.col(f"{each.within}.{quote_column(each.name)}").alias(each.name) for each in view.explode.parts
    ]
    return items.select("*", *parts) if parts else items


def quote_column(name: str) -> str:
    """Quote a column's name for Spark."""
    return f"`{name}`"


def floor_to_span(column: str, size: timedelta) -> Column:
    """Return the start, in UTC, of the aligned span of ``size`` that contains an instant."""
    micros, step = f.unix_micros(f.col(column)), f.lit(size // MICROSECOND)
    return f.timestamp_micros(micros - f.pmod(micros, step))
