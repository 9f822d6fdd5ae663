"""A view of what a process emits, made ready for the engines: rows that a late one may withdraw."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from seamline.model.compile.compiled_view import CompiledView, compile_view
from seamline.model.compile.derived_view import list_expressions
from seamline.model.compile.join_rules import require_sound_expression
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.record_rules import Record
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import CountWindow, Session
from seamline.model.errors import DefinitionError
from seamline.model.measures import make_net
from seamline.model.time.intervals import Grid
from seamline.model.types.schema import Schema


def require_side(process: CompiledProcess, side: str) -> None:
    """Require that a process has a side; DefinitionError."""
    if side not in process.function.forms:
        known = ", ".join(f"{process.name}.{each}" for each in process.function.forms if each)
        raise DefinitionError(
            f"{process.function.name} has no side {side!r}.",
            hint=f"name {process.name}, or one of {known}.",
        )


def compile_process_view(
    pipeline: Pipeline, view: View, process: CompiledProcess, side: str, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view of a side's rows, without a fingerprint; note its problems and return None where it has any."""
    before, place = len(problems.found), f"views[{view.name}]"
    check_process_view(view, problems)
    problems.attempt(f"{place}.of", view.origin, partial(require_side, process, side))
    if len(problems.found) > before:
        return None
    compiled = compile_net_view(pipeline, view, process.schema(side), grid, problems)
    return compiled and replace(compiled, process=process, side=side)


def compile_net_view(
    pipeline: Pipeline, view: View, schema: Schema, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view of rows that may be withdrawn, which have the columns of a schema."""
    before, place = len(problems.found), f"views[{view.name}]"
    measures = dict(view.measures)
    for name, measure in view.measures.items():
        made = problems.attempt(f"{place}.measures[{name}]", view.origin, partial(make_net, measure))
        measures[name] = made or measure
    if len(problems.found) > before:
        return None
    compiled = compile_view(pipeline, replace(view, measures=measures), Record(schema), grid, problems)
    for field, expression in list_expressions(compiled) if compiled else ():
        problems.attempt(f"{place}.{field}", view.origin, partial(require_sound_expression, expression))
    return compiled if len(problems.found) == before else None


def check_process_view(view: View, problems: Problems) -> None:
    """Note what a view of rows that may be withdrawn cannot have."""
    place, why = f"views[{view.name}]", ""
    if isinstance(view.window, Session):
        why = "Withdrawing a row may split a session, and its state does not say where."
    elif isinstance(view.window, CountWindow):
        why = "Withdrawing a row would move all later ones to other windows."
    if why:
        hint = "use a window in time, or let the function emit a row for each such window."
        problems.note(f"{place}.window", view.origin, why, hint)
    if view.explode:
        problems.note(
            f"{place}.explode",
            view.origin,
            "A view of emitted rows cannot have explode.",
            "let the function emit a row for each item.",
        )
