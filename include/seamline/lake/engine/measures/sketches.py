"""Different values and ranks: lists of values in DuckDB while small, sketches of ``datasketches`` above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import datasketches as sketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.measures.steps import (
    Finish,
    Steps,
    list_aggregate_sql,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Quantiles, Ranked
from seamline.model.measures.sketches import EXACT_DISTINCT, EXACT_RANKS, HLL_LG_K, KLL_K
from seamline.runtime.deadline import in_time

HLL = sketches.tgt_hll_type.HLL_8
Sketching = Callable[[Sequence[bytes], Any], bytes]


def keep_or_sketch_values(
    measure: CompiledMeasure, gathered: dict[str, str], most: int, make: Sketching
) -> Steps:
    """Keep at most so many values in order; sketch more of them, or those that meet a sketch.

    ``gathered`` are the values and the sketches of a group, as lists or NULL.
    """
    values, sketch = names_of(measure)
    found, met = map(quote_identifier, gathered)
    pending = scratch_column_name(measure, "pending")
    small = f"({met} IS NULL AND len({found}) <= {most})"
    struct = f"{{'values': {found}, 'sketches': {met}}}"
    return Steps(
        gathered,
        [
            {
                values: f"CASE WHEN {small} THEN list_sort({found}) END",
                pending: f"CASE WHEN {met} IS NOT NULL OR len({found}) > {most} THEN {struct} END",
            }
        ],
        {sketch: (pending, sketch_groups(make))},
    )


def sketch_groups(make: Sketching) -> Finish:
    """Make the sketches of the groups that need one."""
    return lambda pending: pa.array([sketch_of(group, make) for group in in_time(pending)], pa.binary())


def sketch_of(group: pa.StructScalar, make: Sketching) -> bytes | None:
    """Sketch one group; a single sketch that meets no values is kept as it is."""
    if not group.is_valid:
        return None
    met: list[bytes] = group["sketches"].as_py() or []
    values = group["values"].values
    if len(met) == 1 and not values:
        return met[0]
    return make(met, values.to_numpy(zero_copy_only=False) if values else ())


def kll_of(states: Sequence[bytes], values: Any) -> bytes:
    """Sketch the distribution of doubles, with sketches of others."""
    sketch = sketches.kll_doubles_sketch(KLL_K)
    for state in states:
        sketch.merge(sketches.kll_doubles_sketch.deserialize(state))
    if len(values):
        sketch.update(values.copy())  # the binding refuses Arrow's read-only memory
    return bytes(sketch.serialize())


def hll_of(states: Sequence[bytes], values: Any) -> bytes:
    """Sketch different strings or integers, with sketches of others."""
    union = sketches.hll_union(HLL_LG_K)
    for state in states:
        union.update(sketches.hll_sketch.deserialize(state))
    for value in set(values.tolist()) if len(values) else ():
        union.update(value)
    return bytes(union.get_result(HLL).serialize_compact())


class Different:
    """Numbers of different values."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        return self.steps(measure, list_aggregate_sql(value_of(measure), distinct=True), "NULL::BLOB[]")

    def merge(self, measure: CompiledMeasure) -> Steps:
        values, sketch = map(quote_identifier, names_of(measure))
        return self.steps(
            measure, f"list_distinct(flatten({list_aggregate_sql(values)}))", list_aggregate_sql(sketch)
        )

    def steps(self, measure: CompiledMeasure, values: str, met: str) -> Steps:
        """Keep or sketch what was gathered."""
        gathered = {
            scratch_column_name(measure, "values"): values,
            scratch_column_name(measure, "sketches"): met,
        }
        return keep_or_sketch_values(measure, gathered, EXACT_DISTINCT, hll_of)

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        counts = pc.list_value_length(parts[0]).fill_null(0).to_numpy().astype(np.int64)
        for at in in_time(np.flatnonzero(parts[1].is_valid().to_numpy())):
            counts[at] = round(sketches.hll_sketch.deserialize(parts[1][at].as_py()).get_estimate())
        return pa.array(counts)


class RankedValues:
    """Values by rank."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        return self.steps(measure, list_aggregate_sql(f"{value_of(measure)}::DOUBLE"), "NULL::BLOB[]")

    def merge(self, measure: CompiledMeasure) -> Steps:
        values, sketch = map(quote_identifier, names_of(measure))
        return self.steps(measure, f"flatten({list_aggregate_sql(values)})", list_aggregate_sql(sketch))

    def steps(self, measure: CompiledMeasure, values: str, met: str) -> Steps:
        """Keep or sketch what was gathered."""
        gathered = {
            scratch_column_name(measure, "values"): values,
            scratch_column_name(measure, "sketches"): met,
        }
        return keep_or_sketch_values(measure, gathered, EXACT_RANKS, kll_of)

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        assert isinstance(measure.measure, Ranked)
        ranks = measure.measure.ranks
        values, sketch = (part.combine_chunks() for part in parts)
        found = read_ranked_values(values, ranks)
        for at in in_time(np.flatnonzero(sketch.is_valid().to_numpy(zero_copy_only=False))):
            made = sketches.kll_doubles_sketch.deserialize(sketch[at].as_py())
            found[at] = [made.get_quantile(rank, True) for rank in ranks]
        empty = pc.and_(pc.is_null(values), pc.is_null(sketch))
        if not isinstance(measure.measure, Quantiles):
            return pa.array(found[:, 0], mask=empty.to_numpy(zero_copy_only=False))
        offsets = np.arange(len(found) + 1, dtype=np.int32) * len(ranks)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(found.ravel()), mask=empty)


def read_ranked_values(values: pa.ListArray, ranks: Sequence[float]) -> Any:
    """Read ranks off lists of ordered doubles: an array (list, rank), of zeros where a list is NULL."""
    found = np.zeros((len(values), len(ranks)))
    held = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    if not len(held):
        return found
    sizes = pc.list_value_length(values).fill_null(0).to_numpy()[held]
    starts, flat = values.offsets.to_numpy()[held], values.values.to_numpy()
    for at, rank in enumerate(ranks):
        found[held, at] = flat[starts + np.maximum(np.ceil(rank * sizes).astype(np.int64) - 1, 0)]
    return found
