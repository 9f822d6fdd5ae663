"""The columns of what a pipeline reads and writes, as a definition names them, with their types."""

from __future__ import annotations

from collections.abc import Iterable

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.types.schema import Field
from seamline.plan.lineage.lineage_events import Column

INSTANT = "TIMESTAMP"


def list_columns(fields: Iterable[Field]) -> tuple[Column, ...]:
    """List columns with their types."""
    return tuple(Column(each.name, each.type.spark) for each in fields)


def list_state_columns(view: CompiledView) -> tuple[Column, ...]:
    """List the columns of a view's slices and generations: keys, the pane, and states."""
    states = (Column(part.name, part.type) for part in view.parts)
    return (*list_columns(view.keys), Column("pane", INSTANT), *states)


def list_answer_columns(view: CompiledView) -> tuple[Column, ...]:
    """List the columns of a view's serving table: keys, what is shown beside them, the window, and measures."""
    shown = list_columns(field for each in view.decorations for _, field in each.columns)
    window = (Column("window_start", INSTANT), Column("window_end", INSTANT))
    measures = (Column(each.name, each.result) for each in view.measures)
    return (*list_columns(view.keys), *shown, *window, *measures)
