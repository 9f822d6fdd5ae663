"""Counts per bucket and collected values in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from seamline.lake.engine.measures.plain import sum_counts
from seamline.lake.engine.measures.steps import (
    Steps,
    list_aggregate_sql,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import CollectDistinct, Histogram


class Buckets:
    """A column of counts per bucket."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        assert isinstance(measure.measure, Histogram)
        value = f"{value_of(measure)}::DOUBLE"
        edges = [f"{float(edge)!r}::DOUBLE" for edge in measure.measure.edges]
        between = [f"{value} >= {low} AND {value} < {high}" for low, high in pairwise(edges)]
        conditions = [f"{value} < {edges[0]}", *between, f"{value} >= {edges[-1]}"]
        columns = zip(names_of(measure), conditions, strict=True)
        return Steps({name: f"count(*) FILTER ({condition})" for name, condition in columns})

    def merge(self, measure: CompiledMeasure) -> Steps:
        return sum_counts(names_of(measure))

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        counts = np.column_stack([part.fill_null(0).to_numpy() for part in parts])
        offsets = np.arange(len(counts) + 1, dtype=np.int32) * len(parts)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(counts.ravel(), pa.int64()))


class Collected:
    """The smallest of the different values, and whether there were more."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        return self.limit(
            measure, f"coalesce({list_aggregate_sql(value_of(measure), distinct=True)}, [])", "FALSE"
        )

    def merge(self, measure: CompiledMeasure) -> Steps:
        values, truncated = map(quote_identifier, names_of(measure))
        return self.limit(
            measure,
            f"coalesce(list_distinct(flatten({list_aggregate_sql(values)})), [])",
            f"coalesce(bool_or({truncated}), FALSE)",
        )

    def limit(self, measure: CompiledMeasure, gathered: str, truncated: str) -> Steps:
        """Limit a list of different values to the length that the measure allows."""
        assert isinstance(measure.measure, CollectDistinct)
        found, before = scratch_column_name(measure, "found"), scratch_column_name(measure, "before")
        limit = measure.measure.limit
        values, more = names_of(measure)
        return Steps(
            {found: gathered, before: truncated},
            [
                {
                    values: f"list_sort({quote_identifier(found)})[1:{limit}]",
                    more: f"{quote_identifier(before)} OR len({quote_identifier(found)}) > {limit}",
                }
            ],
        )

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        type = arrow_type(measure.result)
        values = parts[0].combine_chunks().cast(type.field("values").type).fill_null([])
        truncated = parts[1].combine_chunks().fill_null(False)
        return pa.StructArray.from_arrays([values, truncated], fields=list(type))
