"""What a co-group needs of its two sources: keys of one type, a window within intervals, and a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.fold_parts import (
    check_code,
    check_emitted_names,
    check_fold_copies,
    check_keys,
    compile_budget,
    find_columns,
    measure_span,
)
from seamline.model.compile.record_rules import Record
from seamline.model.definition.groups import CoGroup
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.functions.groups import PREFIXES, RIGHT, load_group
from seamline.model.time.intervals import Grid
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import BOOLEAN, Field, SqlType
from seamline.model.user_code import class_hash, class_of


def group_facts(group: CoGroup) -> dict[str, Any]:
    """List all that says what is emitted; DefinitionError without a class."""
    return {
        "left": group.left,
        "right": group.right,
        "on": list(group.on.items()),
        "code": class_hash(class_of(str(group.by)), private=True),
        "columns": [sorted(group.left_columns), sorted(group.right_columns)],
        "begin": group.window.length // MICROSECOND,
        "version": group.version,
    }


def compile_group(
    group: CoGroup, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> CompiledProcess | None:
    """Compile a co-group of two sources; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{group.name}]"
    names = (group.left, group.right)
    if group.left == group.right:
        problems.note(
            f"{place}.right",
            group.origin,
            "Both sides are the same source.",
            "use a Process, whose function is given all rows of a key.",
        )
    keys = compile_group_keys(group, records, problems)
    sides = []
    for name, setting, own in zip(names, ("left_columns", "right_columns"), keys, strict=True):
        read = find_columns(group, setting, getattr(group, setting), name, records[name], problems)
        sides.append(tuple(dict.fromkeys([*own, *(read or records[name].schema.fields)])))
        check_fold_copies(group, name, records[name], problems)
    begin = problems.attempt(f"{place}.window", group.origin, partial(measure_window, group, grid))
    budget = compile_budget(group, problems)
    if begin is None or budget is None or len(problems.found) > before:
        return None
    function = problems.attempt(
        f"{place}.by", group.origin, partial(load_group, str(group.by), group.on, sides[0], sides[1])
    )
    if function:
        check_code(group, function, problems)
        check_emitted_names(group, "by", function, keys[0], problems)
    if function is None or len(problems.found) > before:
        return None
    lookups = {each.name for name in names for each in records[name].lookups}
    return CompiledProcess(
        group.name,
        unite_sides(names, keys, sides),
        tuple(unite_keys(keys)),
        function,
        begin,
        None,
        records[group.left].selective,
        group.version,
        frozenset(lookups),
        group.copies,
        budget,
    )


def compile_group_keys(
    group: CoGroup, records: Mapping[str, Record], problems: Problems
) -> tuple[list[Field], list[Field]]:
    """Find the columns of the key on both sides; note what is wrong with them."""
    place = f"derive[{group.name}].on"
    if not group.on:
        problems.note(
            place,
            group.origin,
            "The co-group has no key.",
            'write on={"order_id": "order_id"}: the left column, and the right one that it equals.',
        )
    lefts = find_columns(group, "on", list(group.on), group.left, records[group.left], problems)
    rights = find_columns(group, "on", list(group.on.values()), group.right, records[group.right], problems)
    check_keys(group, "on", lefts, problems)
    if len(lefts) == len(rights) == len(group.on):
        for left, right in zip(lefts, rights, strict=True):
            if left.type != right.type:
                problems.note(
                    place,
                    group.origin,
                    f"{left.name} is {left.type}, {right.name} is {right.type}: a key has columns of one type.",
                    "CAST one of them in select= of its source, and use the column that this makes.",
                )
    return lefts, rights


def measure_window(group: CoGroup, grid: Grid) -> timedelta:
    """Return the length of the windows; DefinitionError where one may be in two intervals."""
    window = group.window
    if window.offset or window.zone != "UTC":
        raise DefinitionError(
            "The windows of a co-group begin in UTC and without an offset, as intervals do.",
            hint=f'write window=Tumbling("{window.size}").',
        )
    return measure_span(window.size, grid)


def unite_sides(
    names: tuple[str, str], keys: tuple[list[Field], list[Field]], sides: list[tuple[Field, ...]]
) -> tuple[JoinSide, ...]:
    """Return both sides with the same columns: those of the key, and those of both, of which one's are NULL."""
    columns = [*unite_keys(keys), Field(RIGHT, BOOLEAN, nullable=False)]
    for prefix, side in zip(PREFIXES, sides, strict=True):
        columns += [replace(each, name=f"{prefix}{each.name}") for each in side]
    found = []
    for number, name in enumerate(names):
        made = {left.name: read_column(own) for left, own in zip(keys[0], keys[number], strict=True)}
        made[RIGHT] = write_constant("true" if number else "false", BOOLEAN)
        for other, (prefix, side) in enumerate(zip(PREFIXES, sides, strict=True)):
            for each in side:
                made[f"{prefix}{each.name}"] = read_column(each) if other == number else write_null(each.type)
        found.append(JoinSide(name, "", tuple(columns), None, made))
    return tuple(found)


def unite_keys(keys: tuple[list[Field], list[Field]]) -> list[Field]:
    """Return the columns of the key, by their left names; NULL where either side's may be."""
    return [
        replace(left, nullable=left.nullable or right.nullable) for left, right in zip(*keys, strict=True)
    ]


def read_column(field: Field) -> Expression:
    """Return the expression of a column's value."""
    name = field.name.replace('"', '""')
    return Expression(field.name, f"`{field.name}`", f'"{name}"', field.type, frozenset({field.name}), ())


def write_constant(text: str, type: SqlType) -> Expression:
    """Return the expression of a constant that both engines write alike."""
    return Expression(text, text, text, type, frozenset(), ())


def write_null(type: SqlType) -> Expression:
    """Return the expression of no value of a type."""
    return Expression(
        f"CAST(NULL AS {type.spark})",
        f"CAST(NULL AS {type.spark})",
        f"CAST(NULL AS {type.duckdb})",
        type,
        frozenset(),
        (),
    )
