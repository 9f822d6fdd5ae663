"""The most frequent values in DuckDB: counted items, cut to a capacity with the error that this makes."""

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
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Top


class Frequent:
    """Items with their counts, the most frequent first, equals by value."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        found = f"map_entries(histogram({value_of(measure)}))"
        return self.truncate(measure, found, "_item.key", "_item.value", "0::BIGINT")

    def merge(self, measure: CompiledMeasure) -> Steps:
        items, error = map(quote_identifier, names_of(measure))
        found = f"flatten({list_aggregate_sql(items)})"
        return self.truncate(measure, found, "_item.value", "_item.n", f"coalesce(sum({error}), 0)::BIGINT")

    def truncate(self, measure: CompiledMeasure, gathered: str, value: str, n: str, error: str) -> Steps:
        """Add up equal values, then take the first count beyond the capacity from all counts."""
        assert isinstance(measure.measure, Top)
        capacity = measure.measure.capacity
        found, before, counted, over = (
            scratch_column_name(measure, name) for name in ("found", "before", "counted", "over")
        )
        items = f"unnest({quote_identifier(found)}) AS _items(_item)"
        summed = f"SELECT {value} AS _v, sum({n})::BIGINT AS _n FROM {items} GROUP BY 1"
        ordered = f"(SELECT list({{'value': _v, 'n': _n}} ORDER BY _n DESC, _v) FROM ({summed}))"
        lower = f"lambda _i: {{'value': _i.value, 'n': _i.n - {quote_identifier(over)}}}"
        kept = f"list_filter({quote_identifier(counted)}, lambda _i: _i.n > {quote_identifier(over)})"
        kept_items, lost = names_of(measure)
        return Steps(
            {found: gathered, before: error},
            [
                {counted: ordered},
                {over: f"coalesce({quote_identifier(counted)}[{capacity + 1}].n, 0)"},
                {
                    kept_items: f"list_transform({kept}, {lower})",
                    lost: f"{quote_identifier(before)} + {quote_identifier(over)}",
                },
            ],
        )

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        assert isinstance(measure.measure, Top)
        shown = pc.list_slice(parts[0].combine_chunks().fill_null([]), 0, measure.measure.k)
        if isinstance(shown, pa.ChunkedArray):
            shown = shown.combine_chunks()
        owners = pc.list_parent_indices(shown)
        errors = pc.take(parts[1].combine_chunks().fill_null(0), owners)
        value, n = shown.flatten().flatten()
        type = arrow_type(measure.result)
        rows = pa.StructArray.from_arrays([value, n, errors], fields=list(type.value_type))
        sizes = pc.list_value_length(shown).to_numpy()
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), rows)
