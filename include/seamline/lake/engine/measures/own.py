"""Users' own measures: DuckDB gathers, the user's Python prepares, merges and presents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from seamline.lake.engine.measures.steps import (
    Finish,
    Steps,
    list_aggregate_sql,
    names_of,
    quote_identifier,
    scratch_column_name,
    value_of,
)
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Own
from seamline.runtime.deadline import in_time

Made = Callable[[Any], Any]


class Owned:
    """States in one column, a struct; a group's values are in memory once."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        own = own_measure_of(measure)
        return self.steps(measure, list_aggregate_sql(value_of(measure)), own.prepare)

    def merge(self, measure: CompiledMeasure) -> Steps:
        (state,) = map(quote_identifier, names_of(measure))
        return self.steps(measure, list_aggregate_sql(state), unpack_own_state)

    def steps(self, measure: CompiledMeasure, gathered: str, state_of: Made) -> Steps:
        """Gather, and add up what each gathered item makes."""
        (state,) = names_of(measure)
        found = scratch_column_name(measure, "found")
        return Steps({found: gathered}, [], {state: (found, fold_own_states(measure, state_of))})

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        own = own_measure_of(measure)
        shown = [own.present(unpack_own_state(state)) for state in in_time(parts[0].to_pylist())]
        return pa.array(shown, arrow_type(measure.result))


def own_measure_of(measure: CompiledMeasure) -> Own:
    """Return the user's measure."""
    assert isinstance(measure.measure, Own)
    return measure.measure


def fold_own_states(measure: CompiledMeasure, state_of: Made) -> Finish:
    """Fold each group's items to one state."""
    own, type = own_measure_of(measure), arrow_type(measure.parts[0].type)
    names = [field.name for field in type]

    def packed(items: Iterable[Any] | None) -> dict[str, Any] | None:
        state = reduce(own.plus, map(state_of, in_time(items or ())), None)
        return None if state is None else dict(zip(names, state, strict=True))

    return lambda column: pa.array([packed(items) for items in in_time(column.to_pylist())], type)


def unpack_own_state(state: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """Return a state as the user's code takes it."""
    return None if state is None else tuple(state.values())
