"""What a pattern needs of its source: conditions of its steps, a time that it is within, and what matches show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.join_rules import compile_sound_condition
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.fold_parts import (
    check_emitted_names,
    check_fold_copies,
    compile_budget,
    compile_where,
    find_keys,
    measure_span,
)
from seamline.model.compile.record_rules import Record
from seamline.model.definition.patterns import Pattern
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.patterns.pattern_function import HOLDS, PatternFunction, load_pattern
from seamline.model.patterns.steps import Steps, parse_steps
from seamline.model.time.intervals import Grid, format_exact_duration, parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import BIGINT, Field


def pattern_facts(pattern: Pattern, interval: str) -> dict[str, Any]:
    """List all that says which matches there are, in intervals of a length."""
    return {
        "of": pattern.of,
        "keys": list(pattern.keys),
        "steps": pattern.steps,
        "within": parse_duration(pattern.within) // MICROSECOND,
        "define": sorted(pattern.define.items()),
        "select": list(pattern.select.items()),
        "begin": parse_duration(pattern.begin or interval) // MICROSECOND,
        "where": pattern.where,
        "skip": pattern.skip,
        "version": pattern.version,
    }


def compile_pattern(
    pattern: Pattern, record: Record, grid: Grid, problems: Problems
) -> CompiledProcess | None:
    """Compile a pattern in the rows of a source; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{pattern.name}]"
    keys = find_keys(pattern, record, problems)
    check_fold_copies(pattern, pattern.of, record, problems)
    where = compile_where(pattern, record, problems)
    steps = problems.attempt(f"{place}.steps", pattern.origin, partial(parse_steps, pattern.steps))
    holds = compile_steps(pattern, steps, record, problems) if steps else None
    begin = problems.attempt(f"{place}.begin", pattern.origin, partial(measure_span, pattern.begin, grid))
    within = problems.attempt(f"{place}.within", pattern.origin, partial(parse_duration, pattern.within))
    if begin and within and within > begin:
        length = format_exact_duration(begin)
        problems.note(
            f"{place}.within",
            pattern.origin,
            f"{pattern.within} is longer than {length}, after which the search begins anew: no match is that long.",
            f'use within="{length}" or less, or longer intervals: batch=Batch(interval=...).',
        )
    budget = compile_budget(pattern, problems)
    if None in (steps, holds, begin, within, budget) or len(problems.found) > before:
        return None
    assert holds and begin and within and budget
    try:
        made = PatternFunction(
            pattern.steps, pattern.select, record.schema, within=within // MICROSECOND, skip=pattern.skip
        )
    except DefinitionError as error:
        setting = next((each for each in ("skip", "select") if error.message.startswith(each)), "steps")
        problems.found.append(
            error.at(field=f"{place}.{setting}", file=pattern.origin.file, line=pattern.origin.line)
        )
        return None
    function = load_pattern(pattern.name, made)
    check_emitted_names(pattern, "select", function, keys, problems)
    if len(problems.found) > before:
        return None
    shown = [field for field in record.schema.fields if field.name in made.columns]
    columns = (*dict.fromkeys([*keys, *shown]), Field(HOLDS, BIGINT, nullable=False))
    return CompiledProcess(
        pattern.name,
        (JoinSide(pattern.of, "", columns, where, {HOLDS: holds}),),
        tuple(keys),
        function,
        begin,
        None,
        record.selective,
        pattern.version,
        frozenset(each.name for each in record.lookups),
        pattern.copies,
        budget,
    )


def compile_steps(pattern: Pattern, steps: Steps, record: Record, problems: Problems) -> Expression | None:
    """Compile the conditions of steps to one number, with a bit for each that holds; None where one is wrong."""
    place, before = f"derive[{pattern.name}].define", len(problems.found)
    for name in pattern.define:
        if name not in steps.names:
            problems.note(
                place,
                pattern.origin,
                f"There is no step {name!r} in {pattern.steps!r}.",
                f"steps are {', '.join(steps.names)}.",
            )
    if not pattern.define:
        problems.note(
            place,
            pattern.origin,
            "No step has a condition, so that any row takes any step.",
            f'write define={{"{steps.names[0]}": "a condition"}}.',
        )
    made = {
        name: problems.attempt(
            f"{place}[{name}]", pattern.origin, partial(compile_sound_condition, text, record.schema)
        )
        for name, text in pattern.define.items()
    }
    if len(problems.found) > before:
        return None
    return unite_conditions([made.get(name) for name in steps.names])


def unite_conditions(conditions: Sequence[Expression | None]) -> Expression:
    """Return the number that has a bit for each condition that is true, the first one's the lowest; None is true."""
    texts = {
        engine: " + ".join(
            f"CASE WHEN {getattr(each, engine) if each else 'true'} THEN CAST({1 << bit} AS BIGINT) "
            "ELSE CAST(0 AS BIGINT) END"
            for bit, each in enumerate(conditions)
        )
        for engine in ("text", "spark", "duckdb")
    }
    columns = frozenset[str]().union(*(each.columns for each in conditions if each))
    return Expression(texts["text"], texts["spark"], texts["duckdb"], BIGINT, columns, ())
