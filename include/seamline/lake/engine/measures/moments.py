"""Variance and standard deviation in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.measures.steps import (
    Steps,
    list_aggregate_sql,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Deviation, Variance


class Spread:
    """Count, mean and squared distances: in two passes over a group, whether of values or of states."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        found = scratch_column_name(measure, "found")
        values = quote_identifier(found)
        n, mean, m2 = names_of(measure)
        apart = f"(_x - {quote_identifier(mean)}) * (_x - {quote_identifier(mean)})"
        return Steps(
            {found: list_aggregate_sql(f"{value_of(measure)}::DOUBLE")},
            [
                {n: f"coalesce(len({values}), 0)", mean: f"list_sum({values}) / len({values})"},
                {m2: f"list_sum(list_transform({values}, lambda _x: {apart}))"},
            ],
        )

    def merge(self, measure: CompiledMeasure) -> Steps:
        found = scratch_column_name(measure, "found")
        states = quote_identifier(found)
        n, mean, m2 = names_of(measure)
        number, middle, squares = map(quote_identifier, (n, mean, m2))
        apart = f"(_s.mean - {middle}) * (_s.mean - {middle})"
        struct = f"{{'n': {number}, 'mean': {middle}, 'm2': {squares}}}"
        return Steps(
            {found: f"list({struct}) FILTER ({number} > 0)"},
            [
                {n: f"coalesce(list_sum(list_transform({states}, lambda _s: _s.n)), 0)::BIGINT"},
                {mean: f"list_sum(list_transform({states}, lambda _s: _s.n * _s.mean)) / {number}"},
                {m2: f"list_sum(list_transform({states}, lambda _s: _s.m2 + _s.n * {apart}))"},
            ],
        )

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        assert isinstance(measure.measure, Variance)
        n = parts[0].fill_null(0).to_numpy()
        above = n - measure.measure.ddof
        m2 = parts[2].cast(pa.float64()).to_numpy()
        variance = pc.divide(pa.array(m2), pa.array(np.maximum(above, 1), pa.float64()))
        shown = pc.sqrt(variance) if isinstance(measure.measure, Deviation) else variance
        return pc.if_else(pa.array(above > 0), shown, pa.scalar(None, pa.float64()))
