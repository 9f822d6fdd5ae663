"""The first and the last value in DuckDB: the least or greatest struct of place and value."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from seamline.lake.engine.measures.steps import (
    Steps,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Last

PLACE = ("_event_time", "_partition", "_offset", "_ordinal")


class OrderedSteps:
    """Values with the place of their row."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        return self.pick(measure, [*PLACE, value_of(measure)])

    def merge(self, measure: CompiledMeasure) -> Steps:
        value, *place = map(quote_identifier, names_of(measure))
        return self.pick(measure, [*place, value])

    def pick(self, measure: CompiledMeasure, columns: Sequence[str]) -> Steps:
        """Pick the first or the last by (time, partition, offset, ordinal, value), of those that have a value."""
        value, *place = names_of(measure)
        fields = ("time", "partition", "number", "ordinal", "value")
        struct = ", ".join(f"'{name}': {column}" for name, column in zip(fields, columns, strict=True))
        pick = "max" if isinstance(measure.measure, Last) else "min"
        found = scratch_column_name(measure, "found")
        columns_of_found = zip([*place, value], fields, strict=True)
        return Steps(
            {found: f"{pick}({{{struct}}}) FILTER ({columns[-1]} IS NOT NULL)"},
            [{name: f"{quote_identifier(found)}.{field}" for name, field in columns_of_found}],
        )

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        return parts[0]
