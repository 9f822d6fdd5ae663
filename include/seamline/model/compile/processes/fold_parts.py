"""What every fold needs of its source: columns, keys that are compared exactly, and spans at borders of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial

from seamline.model.compile.join_rules import compile_sound_condition
from seamline.model.compile.problems import Problems, find_column, format_known_columns, require_exact_key
from seamline.model.compile.processes.compiled_process import Budget
from seamline.model.compile.record_rules import Record
from seamline.model.definition.folds import Folded
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.processes import Process
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.functions.calls import ERRORS
from seamline.model.functions.code_lint import list_unsound_parts
from seamline.model.functions.function import LoadedFunction
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import Grid, format_exact_duration, parse_duration
from seamline.model.types.schema import Field
from seamline.model.user_code import is_stand_in

MOST_INTERVALS = 2_000
"""So many intervals a span may have."""
TIMES = ("DATE", "TIMESTAMP")
"""Types of which Python does not know all values, so that keys would be mixed up."""


def find_columns(
    folded: Folded, setting: str, names: Sequence[str], of: str, record: Record, problems: Problems
) -> list[Field]:
    """Find columns of the rows of source ``of`` by name; note those that there are not, or that are named twice."""
    found: dict[str, Field] = {}
    for name in [names] if isinstance(names, str) else names:
        field, place = find_column(record.schema, name), f"derive[{folded.name}].{setting}"
        if field is None:
            hint = format_known_columns(record.schema, name)
            problems.note(place, folded.origin, f"Source {of!r} has no column {name!r}.", hint)
        elif name in found:
            problems.note(place, folded.origin, f"{name!r} is named twice.", "name it once.")
        else:
            found[name] = field
    return list(found.values())


def check_keys(folded: Folded, setting: str, keys: Iterable[Field], problems: Problems) -> None:
    """Note columns by which rows cannot be kept apart."""
    place = f"derive[{folded.name}].{setting}"
    for key in keys:
        problems.attempt(place, folded.origin, partial(require_exact_key, key.name, key.type))
        if key.type.spark in TIMES:
            hint = "CAST it AS STRING in select= of its source, and use the column that this makes."
            problems.note(
                place, folded.origin, f"{key.name} is a {key.type.spark} and cannot be a key.", hint
            )


def find_keys(folded: Process | Pattern, record: Record, problems: Problems) -> list[Field]:
    """Find the columns of the key; note what is wrong with them."""
    keys = find_columns(folded, "keys", folded.keys, folded.of, record, problems)
    check_keys(folded, "keys", keys, problems)
    if not folded.keys:
        problems.note(
            f"derive[{folded.name}].keys",
            folded.origin,
            "Without keys, all rows would be folded into one state, in one place.",
            "name the columns that each have a state of their own.",
        )
    return keys


def check_fold_copies(folded: Folded, of: str, record: Record, problems: Problems) -> None:
    """Note a wish about copies where nothing says which rows are copies."""
    if folded.copies and not record.dedup:
        problems.note(
            f"derive[{folded.name}].copies",
            folded.origin,
            f"Source {of!r} has no event_id by which to know a copy.",
            "remove copies=, or give the source event_id= and dedup_within=.",
        )


def compile_where(folded: Process | Pattern, record: Record, problems: Problems) -> Expression | None:
    """Compile the condition of the rows that are folded; None for all of them."""
    if not folded.where:
        return None
    return problems.attempt(
        f"derive[{folded.name}].where",
        folded.origin,
        lambda: compile_sound_condition(folded.where, record.schema),
    )


def measure_span(begin: str, grid: Grid) -> timedelta:
    """Return how often a state begins anew; DefinitionError where that is not at borders of intervals."""
    if begin.strip().lower() == "never":
        raise DefinitionError(
            "A state that never begins anew is not supported yet: a build of an interval would read all rows.",
            hint='use how far a state has to go back, such as begin="7 days".',
        )
    length = format_exact_duration(grid.length)
    found = parse_duration(begin) if begin else grid.length
    if found > MOST_INTERVALS * grid.length:
        raise DefinitionError(
            f"{begin} is more than {MOST_INTERVALS} intervals of {length}: a build would read the rows of all.",
            hint="use a shorter duration, or longer intervals: batch=Batch(interval=...).",
        )
    if found > grid.length and found % grid.length:
        raise DefinitionError(
            f"{begin} is no whole number of intervals of {length}: a state would begin within one.",
            hint=f"use a multiple of {length}.",
        )
    if found < grid.length and grid.length % found:
        raise DefinitionError(
            f"{begin} does not divide an interval of {length}: a state would cross the border of an interval.",
            hint=f'use "{length}", or a duration that divides it, such as half.',
        )
    return found


def compile_budget(folded: Folded, problems: Problems) -> Budget | None:
    """Compile what a fold may cost; note a duration or a memory size that is none."""
    place = f"derive[{folded.name}]"
    timeout = problems.attempt(f"{place}.timeout", folded.origin, partial(parse_duration, folded.timeout))
    memory = problems.attempt(f"{place}.memory", folded.origin, partial(parse_memory, folded.memory))
    return Budget(timeout.total_seconds(), memory) if timeout and memory else None


def check_code(folded: Folded, function: LoadedFunction, problems: Problems) -> None:
    """Note what the code of a user's class should not do."""
    for part in list_unsound_parts(function.user) if function.user and not is_stand_in(function.user) else ():
        problems.note(
            f"derive[{folded.name}].by",
            folded.origin,
            f"{part}.",
            "a build must get the same result as the stream: use only what the call is given, and out.at.",
        )


def check_emitted_names(
    folded: Folded, setting: str, function: LoadedFunction, keys: Iterable[Field], problems: Problems
) -> None:
    """Note columns that are emitted beside keys of the same name."""
    taken = {key.name.lower(): key.name for key in keys}
    who = f"{function.name} emits" if function.user else "The pattern selects"
    for side, form in function.forms.items():
        for field in form.fields:
            if field.name.lower() in taken:
                problems.note(
                    f"derive[{folded.name}].{setting}",
                    folded.origin,
                    f"{who} a column {field.name!r}{f' on the side {side}' if side else ''}, and the "
                    f"key {taken[field.name.lower()]!r} is in each row already.",
                    "leave it out, or rename it."
                    if side != ERRORS
                    else "rename the column in select= of the source: the columns of the side `errors` are fixed.",
                )
