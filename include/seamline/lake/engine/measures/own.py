"""Users' own measures: DuckDB gathers, the user's Python prepares, merges and presents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from seamline.lake.engine.measures.steps import Finish, Steps, listed, names_of, quoted, scratch, value_of
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Own
from seamline.runtime.deadline import in_time

Made = Callable[[Any], Any]


class Owned:
    """States in one column, a struct; a group's values are held in memory once."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        own = owner(measure)
        return self.steps(measure, listed(value_of(measure)), own.prepare)

    def merge(self, measure: CompiledMeasure) -> Steps:
        (state,) = map(quoted, names_of(measure))
        return self.steps(measure, listed(state), unpacked)

    def steps(self, measure: CompiledMeasure, gathered: str, state_of: Made) -> Steps:
        """Gather, and add up what each gathered item makes."""
        (state,) = names_of(measure)
        found = scratch(measure, "found")
        return Steps({found: gathered}, [], {state: (found, finish(measure, state_of))})

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        own = owner(measure)
        shown = [own.present(unpacked(state)) for state in in_time(parts[0].to_pylist())]
        return pa.array(shown, arrow_type(measure.result))


def owner(measure: CompiledMeasure) -> Own:
    """Return the user's measure."""
    assert isinstance(measure.measure, Own)
    return measure.measure


def finish(measure: CompiledMeasure, state_of: Made) -> Finish:
    """Fold each group's items to one state."""
    own, type = owner(measure), arrow_type(measure.parts[0].type)
    names = [field.name for field in type]

    def packed(items: Iterable[Any] | None) -> dict[str, Any] | None:
        state = reduce(own.plus, map(state_of, in_time(items or ())), None)
        return None if state is None else dict(zip(names, state, strict=True))

    return lambda column: pa.array([packed(items) for items in in_time(column.to_pylist())], type)


def unpacked(state: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """Return a state as the user's code takes it."""
    return None if state is None else tuple(state.values())
