"""The measures that Spark itself aggregates to the states that DuckDB makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as f

from seamline.model import measures as kinds
from seamline.model.compile.compiled_pipeline import CompiledMeasure, CompiledView

PLACE = ("_event_time", "_partition", "_offset", "_ordinal")
Aggregate = Callable[[CompiledMeasure, Column], list[Column]]


def is_native(view: CompiledView) -> bool:
    """Return whether Spark's own aggregates make every state of a view."""
    return all(type(state.measure) in NATIVE and not is_pair(state) for state in view.states)


def is_pair(measure: CompiledMeasure) -> bool:
    """Return whether a total is a pair (of doubles, or with a carry), which no aggregate of Spark's makes."""
    return any(part.name.endswith(("__lost", "__carry")) for part in measure.parts)


def measure_state_columns(measure: CompiledMeasure) -> list[Column]:
    """Return the state columns of one measure, in the order of its parts."""
    value = f.expr(measure.expression.spark) if measure.expression else f.lit(1)
    columns = NATIVE[type(measure.measure)](measure, value)
    return [
        column.cast(part.type).alias(part.name) for column, part in zip(columns, measure.parts, strict=True)
    ]


def aggregate_count(measure: CompiledMeasure, value: Column) -> list[Column]:
    """Count values."""
    return [f.count(value)]


def aggregate_sum(measure: CompiledMeasure, value: Column) -> list[Column]:
    """Add up whole numbers or decimals."""
    exact = "DECIMAL(20,0)" if measure.input in ("INT", "BIGINT") else measure.input
    return [f.sum(value.cast(exact))]


def aggregate_mean(measure: CompiledMeasure, value: Column) -> list[Column]:
    """Add up and count."""
    return [*aggregate_sum(measure, value), f.count(value)]


def aggregate_by_place(pick: Callable[[Column], Column]) -> Aggregate:
    """Pick by the place of a row, of those that have a value."""

    def picked(measure: CompiledMeasure, value: Column) -> list[Column]:
        struct = f.struct(*map(f.col, PLACE), value.alias("value"))
        found = pick(f.when(value.isNotNull(), struct))
        return [found.getField(name) for name in ("value", *PLACE)]

    return picked


def aggregate_variance(measure: CompiledMeasure, value: Column) -> list[Column]:
    """Return count, mean and the sum of squared distances."""
    number = value.cast("DOUBLE")
    return [f.count(number), f.avg(number), f.var_pop(number) * f.count(number)]


def aggregate_histogram(measure: CompiledMeasure, value: Column) -> list[Column]:
    """Count per bucket."""
    assert isinstance(measure.measure, kinds.Histogram)
    number, edges = value.cast("DOUBLE"), [f.lit(float(edge)) for edge in measure.measure.edges]
    between = [(number >= low) & (number < high) for low, high in pairwise(edges)]
    return [f.count_if(each) for each in (number < edges[0], *between, number >= edges[-1])]


NATIVE: Mapping[type[kinds.Measure], Aggregate] = {
    kinds.Count: aggregate_count,
    kinds.Sum: aggregate_sum,
    kinds.Average: aggregate_mean,
    kinds.NetSum: aggregate_mean,
    kinds.NetAverage: aggregate_mean,
    kinds.Minimum: lambda _, value: [f.min(value)],
    kinds.Maximum: lambda _, value: [f.max(value)],
    kinds.First: aggregate_by_place(f.min),
    kinds.Last: aggregate_by_place(f.max),
    kinds.Variance: aggregate_variance,
    kinds.Deviation: aggregate_variance,
    kinds.Histogram: aggregate_histogram,
}
