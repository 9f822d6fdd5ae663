"""A view by count windows that slide, or go on over intervals, made ready for the engines: as one of emitted rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.compiled_view import CompiledView, compile_view
from seamline.model.compile.grouping_sets import NUMBER
from seamline.model.compile.join_rules import compile_sound_condition
from seamline.model.compile.problems import Problems, find_column
from seamline.model.compile.processes.compiled_process import Budget, CompiledProcess
from seamline.model.compile.processes.fold_parts import TIMES, measure_span
from seamline.model.compile.processes.process_view import compile_process_view
from seamline.model.compile.record_rules import Record
from seamline.model.compile.sources import has_several
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import CountWindow, Tumbling
from seamline.model.functions.calls import EMITTED
from seamline.model.functions.last_rows import load_windows
from seamline.model.time.intervals import Grid, format_exact_duration
from seamline.model.types.schema import Field

BUDGET = Budget(60.0, 1 << 30)
"""What the windows of a key may cost: their rows are limited by the author."""


def compile_counted_view(
    pipeline: Pipeline,
    view: View,
    names: Sequence[str],
    record: Record,
    lookups: Collection[str],
    grid: Grid,
    problems: Problems,
) -> CompiledView | None:
    """Compile a view of sources by such windows, without a fingerprint; note its problems, None where it has any.

    ``record`` is what the rows of sources ``names`` have in common, ``lookups`` name those that they are made with.
    """
    window, place, before = view.window, f"views[{view.name}]", len(problems.found)
    assert isinstance(window, CountWindow)
    if not has_several(pipeline):
        problems.note(
            f"{place}.window",
            view.origin,
            "Count windows that slide, or begin anew at other times than intervals, are of sources that have names.",
            'write source=[KafkaSource(name="clicks", ...)], and View(of="clicks").',
        )
        return None
    begin = problems.attempt(f"{place}.window", view.origin, partial(measure_span, window.begin, grid))
    plain = compile_view(pipeline, view, record, grid, problems)
    where = None
    if plain and view.where:
        where = problems.attempt(
            f"{place}.where", view.origin, partial(compile_sound_condition, view.where, record.schema)
        )
    check_window_keys(view, plain.keys if plain else (), problems)
    if window.copies and not record.dedup:
        problems.note(
            f"{place}.window",
            view.origin,
            "No event_id says which events are copies.",
            "remove copies=, or give the source event_id= and dedup_within=.",
        )
    if plain is None or begin is None or len(problems.found) > before:
        return None
    process = replace(fold_windows(view, plain, names, record, begin), lookups=frozenset(lookups))
    if taken := [field.name for field in process.columns if field.name.lower() == NUMBER]:
        problems.note(
            f"{place}.measures",
            view.origin,
            f"They read a column {taken[0]!r}, and {NUMBER} numbers the windows.",
            "rename the column in select= of its source.",
        )
        return None
    process = replace(process, sides=tuple(replace(side, where=where) for side in process.sides))
    whole = format_exact_duration(grid.length)
    inner = replace(view, keys=[*view.keys, NUMBER], window=Tumbling(whole), where="")
    made = compile_process_view(pipeline, inner, process, EMITTED, grid, problems)
    return made and replace(made, window=window)


def check_window_keys(view: View, keys: Sequence[Field], problems: Problems) -> None:
    """Note keys by which rows cannot be kept apart."""
    place = f"views[{view.name}].keys"
    for key in keys:
        if key.type.spark in TIMES:
            problems.note(
                place,
                view.origin,
                f"{key.name} is a {key.type.spark} and cannot be a key of such windows.",
                "CAST it AS STRING in select= of its source, and use the column that this makes.",
            )
    if not view.keys:
        problems.note(
            place,
            view.origin,
            "Without keys, all rows would be counted in one place.",
            "name the columns that are each counted alone.",
        )


def fold_windows(
    view: View, plain: CompiledView, names: Sequence[str], record: Record, begin: timedelta
) -> CompiledProcess:
    """Return the fold that emits the rows of each window; ``plain`` is the view by windows that do not slide."""
    window = view.window
    assert isinstance(window, CountWindow)
    read = {
        name.lower()
        for measure in plain.measures
        for each in measure.sources
        if each.expression
        for name in each.expression.columns
    }
    keys = tuple(field for name in view.keys if (field := find_column(record.schema, name)))
    others = [field for field in record.schema.fields if field.name.lower() in read and field not in keys]
    slide = window.slide or window.events
    name = f"CountWindow({window.events}, slide={slide})"
    function = load_windows(name, NUMBER, others, window.events, slide)
    columns = (*keys, *others)
    return CompiledProcess(
        view.name,
        tuple(JoinSide(name, "", columns) for name in names),
        keys,
        function,
        begin,
        None,
        record.selective,
        copies=window.copies,
        budget=BUDGET,
    )
