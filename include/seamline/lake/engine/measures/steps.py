"""How DuckDB makes and merges the state of one measure: what a family of measures has to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol

import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledMeasure

Finish = Callable[[pa.ChunkedArray], pa.Array]


@dataclass(frozen=True)
class Steps:
    """How columns are computed: SQL aggregates per group, rounds of SQL over those, Python over one column."""

    gathered: Mapping[str, str]
    """SQL aggregates by column name."""
    rounds: Sequence[Mapping[str, str]] = ()
    """SQL by column name; a round may use columns of earlier ones. A column that is no part is dropped at the end."""
    finished: Mapping[str, tuple[str, Finish]] = field(default_factory=dict)
    """By column name: the column that the function reads, and the function."""

    def beside(self, other: Steps) -> Steps:
        """Combine the steps of both."""
        nothing: Mapping[str, str] = {}
        rounds = zip_longest(self.rounds, other.rounds, fillvalue=nothing)
        return Steps(
            {**self.gathered, **other.gathered},
            [{**one, **another} for one, another in rounds],
            {**self.finished, **other.finished},
        )


class Family(Protocol):
    """The engine's side of some kinds of measures."""

    def prepare(self, measure: CompiledMeasure) -> Steps:
        """Return the steps that make the state of a group of rows."""
        ...

    def merge(self, measure: CompiledMeasure) -> Steps:
        """Return the steps that merge a group of states into one."""
        ...

    def present(self, measure: CompiledMeasure, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        """Turn state columns into the presented column, of any type that casts to the result's."""
        ...


def quote_identifier(name: str) -> str:
    """Quote a column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def value_of(measure: CompiledMeasure) -> str:
    """Write the measure's expression, for SQL over rows."""
    assert measure.expression
    return f"({measure.expression.duckdb})"


def names_of(measure: CompiledMeasure) -> list[str]:
    """List the state columns."""
    return [part.name for part in measure.parts]


def scratch_column_name(measure: CompiledMeasure, name: str) -> str:
    """Name a column that is no part of the state."""
    return f"{measure.stored}__{name}__scratch"


def list_aggregate_sql(value: str, *, distinct: bool = False) -> str:
    """Write the aggregate that gathers values that are not NULL; NULL if there are none."""
    return f"list({'DISTINCT ' if distinct else ''}{value}) FILTER ({value} IS NOT NULL)"
