"""A view of an as-of join's rows made ready for the engines: rows that a late version may withdraw."""

from __future__ import annotations

from dataclasses import replace

from seamline.model.compile.compiled_join import KIND, CompiledJoin
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.process_view import compile_net_view
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import CountWindow, Session
from seamline.model.time.intervals import Grid
from seamline.model.types.schema import Schema


def compile_as_of_view(
    pipeline: Pipeline, view: View, join: CompiledJoin, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view of its rows, without a fingerprint; note its problems and return None where it has any."""
    before = len(problems.found)
    check_as_of_view(view, problems)
    if len(problems.found) > before:
        return None
    schema = Schema(tuple(field for field in join.schema.fields if field.name != KIND))
    compiled = compile_net_view(pipeline, view, schema, grid, problems)
    return compiled and replace(compiled, join=join)


def check_as_of_view(view: View, problems: Problems) -> None:
    """Note what a view of rows of which one may take another's place cannot have."""
    place = f"views[{view.name}]"
    if isinstance(view.window, Session | CountWindow):
        problems.note(
            f"{place}.window",
            view.origin,
            "A late version may withdraw rows, and a session or a count window cannot take them out again.",
            "use a time window, or a view of the left source.",
        )
    if view.explode:
        problems.note(
            f"{place}.explode",
            view.origin,
            "A view of an as-of join cannot have explode.",
            "explode in a view of a source.",
        )
