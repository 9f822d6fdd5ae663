"""What a view's measures are of some rows, folded one by one in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledMeasure, CompiledView
from seamline.model.measures import Formula, Place, Ratio, Sum, negate_state

Folded = tuple[Place, tuple[Any, ...], int]
"""A row's place, the values that ``list_fold_sources`` read of it, and its sign: -1 for one that withdraws another."""


def list_fold_sources(view: CompiledView) -> list[CompiledMeasure]:
    """List what a view folds: its measures, and in the place of a derived one what that is made of."""
    return [source for each in view.measures for source in each.sources]


def present_measures(
    con: duckdb.DuckDBPyConnection, view: CompiledView, rows: Sequence[Folded]
) -> dict[str, Any]:
    """Present every measure of one window's rows."""
    read = list_fold_sources(view)
    folded = [
        fold_signed(each, [(place, values[at], sign) for place, values, sign in rows])
        for at, each in enumerate(read)
    ]
    shown = (each.measure.present(state) for each, state in zip(read, folded, strict=True))
    return {
        **{
            each.name: compute_derived_measure(con, each, [next(shown) for _ in each.sources])
            for each in view.measures
        },
        **{
            each.beyond: each.measure.beyond(state)
            for each, state in zip(read, folded, strict=True)
            if isinstance(each.measure, Sum) and each.beyond
        },
    }


def fold_signed(measure: CompiledMeasure, rows: Sequence[tuple[Place, Any, int]]) -> Any:
    """Fold a measure's values, each with its place and sign."""
    states = []
    for wanted in (1, -1):
        mine = [(value, place) for place, value, sign in rows if sign == wanted]
        states.append(measure.measure.fold([value for value, _ in mine], [place for _, place in mine]))
        if not mine and wanted < 0:
            return states[0]
    return measure.measure.plus(states[0], negate_state(states[1]))


def compute_derived_measure(
    con: duckdb.DuckDBPyConnection, measure: CompiledMeasure, values: Sequence[Any]
) -> Any:
    """Make a measure of what its sources present; what an expression means has one implementation, DuckDB's."""
    if isinstance(measure.measure, Ratio):
        return measure.measure.divided(*values)
    if measure.shown is None or not isinstance(measure.measure, Formula):
        return values[0]
    types = [arrow_type(each.result) for each in measure.operands]
    columns = [pa.array([value], type) for value, type in zip(values, types, strict=True)]
    parts = pa.table(columns, names=list(measure.measure.made_of))
    return query_rows(con, f"SELECT ({measure.shown.duckdb}) FROM rows", parts)[0][0]


def query_rows(con: duckdb.DuckDBPyConnection, text: str, rows: pa.Table) -> list[tuple[Any, ...]]:
    """Query one table, known as ``rows``, with DuckDB."""
    con.register("rows", rows)
    try:
        return con.execute(text).fetchall()
    finally:
        con.unregister("rows")
