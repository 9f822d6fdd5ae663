"""What a process needs of its source and of its function, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.derived_names import check_derived_name
from seamline.model.compile.join_rules import compile_sound_condition
from seamline.model.compile.problems import Problems, find_column, format_known_columns, require_exact_key
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.record_rules import Record
from seamline.model.compile.sources import split_process_name
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.processes import Process
from seamline.model.errors import DefinitionError
from seamline.model.functions.calls import ERRORS
from seamline.model.functions.code_lint import list_unsound_parts
from seamline.model.functions.function import LoadedFunction, load_function
from seamline.model.time.intervals import Grid, format_exact_duration, parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Field

TIMES = ("DATE", "TIMESTAMP")
"""Types of which Python does not know all values, so that keys would be mixed up."""


def compile_processes(
    pipeline: Pipeline, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> dict[str, CompiledProcess]:
    """Compile the processes of a pipeline by name; note the problems of those that are left out."""
    found: dict[str, CompiledProcess] = {}
    for each in pipeline.derive if records else ():
        if not isinstance(each, Process) or not check_derived_name(pipeline, each, records, problems):
            continue
        if each.of not in records:
            known = ", ".join(filter(None, records)) or "none: sources that rows are derived from have names"
            problems.note(
                f"derive[{each.name}].of",
                each.origin,
                f"There is no source {each.of!r}.",
                f"the sources are {known}.",
            )
        elif made := compile_process(each, records[each.of], grid, problems):
            found[each.name] = made
    return found


def find_process(pipeline: Pipeline, names: Sequence[str]) -> Process | None:
    """Find the process of which a view counts emitted rows; None where it counts others."""
    if len(names) != 1:
        return None
    name, _ = split_process_name(names[0])
    return next((each for each in pipeline.derive if isinstance(each, Process) and each.name == name), None)


def process_facts(process: Process, side: str, interval: str) -> dict[str, Any]:
    """List all that says which rows a side has, in intervals of a length; DefinitionError without a function."""
    return {
        "of": process.of,
        "code": load_function(str(process.by)).code,
        "keys": list(process.keys),
        "columns": sorted(process.columns),
        "where": process.where,
        "begin": parse_duration(process.begin or interval) // MICROSECOND,
        "forget": parse_duration(process.forget) // MICROSECOND if process.forget else None,
        "version": process.version,
        "side": side,
    }


def compile_process(
    process: Process, record: Record, grid: Grid, problems: Problems
) -> CompiledProcess | None:
    """Compile a process of the rows of a source; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{process.name}]"
    keys = find_columns(process, "keys", process.keys, record, problems)
    for key in keys:
        problems.attempt(f"{place}.keys", process.origin, partial(require_exact_key, key.name, key.type))
        if key.type.spark in TIMES:
            hint = "CAST it AS STRING in select= of its source, and use the column that this makes."
            problems.note(
                f"{place}.keys",
                process.origin,
                f"{key.name} is a {key.type.spark} and cannot be a key.",
                hint,
            )
    if process.copies and not record.dedup:
        problems.note(
            f"{place}.copies",
            process.origin,
            f"Source {process.of!r} has no event_id by which to know a copy.",
            "remove copies=, or give the source event_id= and dedup_within=.",
        )
    if not process.keys:
        problems.note(
            f"{place}.keys",
            process.origin,
            "Without keys, all rows would be folded into one state, in one place.",
            "name the columns that each have a state of their own.",
        )
    read = find_columns(process, "columns", process.columns, record, problems) or record.schema.fields
    where = None
    if process.where:
        where = problems.attempt(
            f"{place}.where", process.origin, lambda: compile_sound_condition(process.where, record.schema)
        )
    function = problems.attempt(f"{place}.by", process.origin, partial(load_function, str(process.by)))
    begin = problems.attempt(f"{place}.begin", process.origin, partial(measure_span, process.begin, grid))
    forget = None
    if process.forget:
        forget = problems.attempt(f"{place}.forget", process.origin, partial(parse_duration, process.forget))
    if function:
        check_function(process, function, keys, problems)
    if function is None or begin is None or len(problems.found) > before:
        return None
    columns = tuple(dict.fromkeys([*keys, *read]))
    return CompiledProcess(
        process.name,
        JoinSide(process.of, "", columns, where),
        tuple(keys),
        function,
        begin,
        forget,
        record.selective,
        process.version,
        frozenset(each.name for each in record.lookups),
        process.copies,
    )


def find_columns(
    process: Process, setting: str, names: Sequence[str], record: Record, problems: Problems
) -> list[Field]:
    """Find columns of the source's rows by name; note those that there are not, or that are named twice."""
    found: dict[str, Field] = {}
    for name in [names] if isinstance(names, str) else names:
        field, place = find_column(record.schema, name), f"derive[{process.name}].{setting}"
        if field is None:
            hint = format_known_columns(record.schema, name)
            problems.note(place, process.origin, f"Source {process.of!r} has no column {name!r}.", hint)
        elif name in found:
            problems.note(place, process.origin, f"{name!r} is named twice.", "name it once.")
        else:
            found[name] = field
    return list(found.values())


def measure_span(begin: str, grid: Grid) -> timedelta:
    """Return how often a state begins anew; DefinitionError where that is not at borders of intervals."""
    if begin.strip().lower() == "never":
        raise DefinitionError(
            "A state that never begins anew is not supported yet: a build of an interval would read all rows.",
            hint='use the length of an interval, such as begin="1 day".',
        )
    length = format_exact_duration(grid.length)
    found = parse_duration(begin) if begin else grid.length
    if found > grid.length:
        raise DefinitionError(
            f"{begin} is longer than an interval of {length}: a state over several intervals is not supported yet.",
            hint=f'use begin="{length}", or longer intervals: batch=Batch(interval=...).',
        )
    if grid.length % found:
        raise DefinitionError(
            f"{begin} does not divide an interval of {length}: a state would cross the border of an interval.",
            hint=f'use begin="{length}", or a duration that divides it, such as half.',
        )
    return found


def check_function(
    process: Process, function: LoadedFunction, keys: Iterable[Field], problems: Problems
) -> None:
    """Note what a function's code should not do, and columns that it emits beside keys of the same name."""
    place = f"derive[{process.name}].by"
    for part in list_unsound_parts(type(function.made)):
        problems.note(
            place,
            process.origin,
            f"{part}.",
            "a build must get the same result as the stream: use only the row, the state and out.at.",
        )
    taken = {key.name.lower(): key.name for key in keys}
    for side, form in function.forms.items():
        for field in form.fields:
            if field.name.lower() in taken:
                problems.note(
                    place,
                    process.origin,
                    f"{function.name} emits a column {field.name!r}{f' on the side {side}' if side else ''}, and the "
                    f"key {taken[field.name.lower()]!r} is in each row already.",
                    "leave it out, or rename it."
                    if side != ERRORS
                    else "rename the column in select= of the source: the columns of the side `errors` are fixed.",
                )
