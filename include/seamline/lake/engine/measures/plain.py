"""Counts, totals, means and extremes in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.measures.carried import cast_totals_to_doubles, null_overflowed_totals, sum_decimals
from seamline.lake.engine.measures.steps import (
    Steps,
    list_aggregate_sql,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Maximum, Part


class CountSteps:
    """Counts of rows."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        (name,) = names_of(measure)
        return Steps({name: f"count({value_of(measure) if measure.expression else '*'})::BIGINT"})

    def merge(self, measure: CompiledMeasure) -> Steps:
        return sum_counts(names_of(measure))

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        return parts[0].fill_null(0)


class Totalled:
    """Totals: exact in decimals, with a carry beside long ones; a pair of doubles for doubles."""

    def total_columns(self, measure: CompiledMeasure) -> tuple[Part, ...]:
        """List the columns of the total."""
        return measure.parts

    def prepare(self, measure: CompiledMeasure) -> Steps:
        total, *more = self.total_columns(measure)
        value = value_of(measure)
        if total.type == "DOUBLE":
            return sum_doubles(measure, [total.name, more[0].name], list_aggregate_sql(f"{value}::DOUBLE"))
        if more:
            return sum_decimals(measure, total, more[0], value)
        return Steps({total.name: f"sum({value})::{total.type}"})

    def merge(self, measure: CompiledMeasure) -> Steps:
        total, *more = self.total_columns(measure)
        if total.type == "DOUBLE":
            names = [total.name, more[0].name]
            return sum_doubles(
                measure,
                names,
                f"list_concat({', '.join(list_aggregate_sql(quote_identifier(name)) for name in names)})",
            )
        if more:
            return sum_decimals(
                measure, total, more[0], quote_identifier(total.name), quote_identifier(more[0].name)
            )
        return Steps({total.name: f"sum({quote_identifier(total.name)})::{total.type}"})

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        total, *more = parts
        if not more:
            return total
        return (
            pc.add(total, more[0])
            if pa.types.is_floating(total.type)
            else null_overflowed_totals(total, more[0])
        )


class Averaged(Totalled):
    """A total, and a count beside it."""

    def total_columns(self, measure: CompiledMeasure) -> tuple[Part, ...]:
        return measure.parts[:-1]

    def prepare(self, measure: CompiledMeasure) -> Steps:
        count = names_of(measure)[-1]
        return super().prepare(measure).beside(Steps({count: f"count({value_of(measure)})::BIGINT"}))

    def merge(self, measure: CompiledMeasure) -> Steps:
        return super().merge(measure).beside(sum_counts(names_of(measure)[-1:]))

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        total, *more = parts[:-1]
        if more and pa.types.is_decimal(total.type):
            number = cast_totals_to_doubles(total, more[0])
        else:
            number = super().present(measure, parts[:-1]).cast(pa.float64())
        return pc.divide(number, parts[-1].cast(pa.float64()))


class NetAveraged(Averaged):
    """A mean of values that are counted: it is NULL where none is left, whose total is 0."""

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        return null_without_values(super().present(measure, parts), parts[-1])


class NetTotalled(Averaged):
    """A total of values that are counted: it is NULL where none is left."""

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        return null_without_values(Totalled.present(self, measure, parts[:-1]), parts[-1])


def null_without_values(shown: pa.ChunkedArray, counts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return what is presented, with NULL where no value is left."""
    return pc.if_else(pc.equal(counts.fill_null(0), 0), pa.scalar(None, shown.type), shown)


def sum_doubles(measure: CompiledMeasure, names: Sequence[str], gathered: str) -> Steps:
    """Add up a list of doubles to (total, what rounding lost), whatever their order.

    Each value is cut at one bit, that of ``grid``, so high that the upper parts add up without rounding (Rump,
    Ogita and Oishi, Accurate Floating-Point Summation, 2008); the lower parts are too small for their rounding
    to show. A total beyond the range of doubles is infinite.
    """
    scratches = [scratch_column_name(measure, name) for name in ("values", "largest", "grid", "high", "low")]
    values, largest, grid, high, low = map(quote_identifier, scratches)
    total = quote_identifier(names[0])
    bits = f"ceil(log2({largest})) + ceil(log2(len({values}) + 2)) + 1"
    upper = f"list_sum(list_transform({values}, lambda _x: ({grid} + _x) - {grid}))"
    lower = f"list_sum(list_transform({values}, lambda _x: _x - (({grid} + _x) - {grid})))"
    fits = f"({grid} > 0 AND isfinite({grid}))"
    shadow = f"({total} - {high})"
    rounding = f"({high} - ({total} - {shadow})) + ({low} - {shadow})"
    return Steps(
        {scratches[0]: gathered},
        [
            {scratches[1]: f"greatest(list_max({values}), -list_min({values}))"},
            {scratches[2]: f"CASE WHEN {largest} > 0 THEN pow(2::DOUBLE, {bits}) END"},
            {
                scratches[3]: f"CASE WHEN {fits} THEN {upper} ELSE list_sum({values}) END",
                scratches[4]: f"CASE WHEN {fits} THEN {lower} ELSE {values}[1] * 0 END",
            },
            {names[0]: f"{high} + {low}"},
            {names[1]: f"CASE WHEN isfinite({total}) THEN {rounding} ELSE {total} * 0 END"},
        ],
    )


class Extreme:
    """The smallest or the largest value."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        return self.pick(measure, value_of(measure))

    def merge(self, measure: CompiledMeasure) -> Steps:
        return self.pick(measure, quote_identifier(names_of(measure)[0]))

    def pick(self, measure: CompiledMeasure, value: str) -> Steps:
        """Pick among values."""
        pick = "max" if isinstance(measure.measure, Maximum) else "min"
        return Steps({names_of(measure)[0]: f"{pick}({value})"})

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        return parts[0]


def sum_counts(names: Sequence[str]) -> Steps:
    """Add up counts."""
    return Steps({name: f"sum({quote_identifier(name)})::BIGINT" for name in names})
