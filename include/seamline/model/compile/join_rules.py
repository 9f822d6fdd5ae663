"""Which joins a definition declares, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import CompiledJoin, JoinSide
from seamline.model.compile.derived_names import check_derived_name
from seamline.model.compile.problems import (
    Problems,
    compile_condition,
    find_column,
    format_known_columns,
    require_exact_key,
)
from seamline.model.compile.record_rules import Record
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import Ask
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.time.intervals import Grid, format_exact_duration, parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Schema

MILLISECOND = timedelta(milliseconds=1)
MOST_INTERVALS = 100
"""A join that reaches over more intervals than these makes each of them wait too long for others."""


def join_facts(join: Join | Ask) -> dict[str, Any]:
    """List all that says which pairs there are."""
    if isinstance(join, Ask):
        return {"ask": join.of, "when": join.when, "version": join.version}
    bounds = [
        [type(each).__name__, str(getattr(each, "duration", each))] for each in (join.before, join.after)
    ]
    return {
        "left": join.left,
        "right": join.right,
        "on": sorted(join.on.items()),
        "bounds": bounds,
        **({"where": join.where} if join.where else {}),
        **({"same": join.same.facts} if join.same else {}),
        **({"null_safe": sorted(join.null_safe)} if join.null_safe else {}),
    }


def find_join(pipeline: Pipeline, names: Sequence[str]) -> Join | AsOf | Ask | None:
    """Find the join, or the question, of which a view counts the rows; None if it counts those of sources."""
    return next(
        (
            each
            for each in pipeline.derive
            if list(names) == [each.name] and isinstance(each, Join | AsOf | Ask)
        ),
        None,
    )


def compile_joins(
    pipeline: Pipeline, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> dict[str, CompiledJoin]:
    """Compile the joins of a pipeline by name; note the problems of those that are left out."""
    found: dict[str, CompiledJoin] = {}
    for join in pipeline.derive if records else ():
        if not isinstance(join, Join) or not check_derived_name(pipeline, join, records, problems):
            continue
        check_sides(pipeline, join, records, problems)
        if {join.left, join.right} <= set(records) and (made := compile_join(join, records, grid, problems)):
            found[join.name] = made
    return found


def check_sides(
    pipeline: Pipeline, join: Join | AsOf, records: Mapping[str, Record], problems: Problems
) -> None:
    """Note sides that are no sources of the pipeline."""
    known = ", ".join(filter(None, records)) or "none: sources that are joined have names"
    right = "versions" if isinstance(join, AsOf) else "right"
    for side, name in (("left", join.left), (right, join.right)):
        if name not in records:
            nested = "; a join is of sources, not of joins" if find_join(pipeline, [name]) else ""
            problems.note(
                f"derive[{join.name}].{side}",
                join.origin,
                f"There is no source {name!r}.",
                f"the sources are {known}{nested}.",
            )


def compile_join(
    join: Join, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> CompiledJoin | None:
    """Compile one join; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{join.name}]"
    bounds = [
        problems.attempt(f"{place}.{name}", join.origin, lambda b=bound: measure_bound(b))  # type: ignore[misc]
        for name, bound in (("before", join.before), ("after", join.after))
    ]
    if len(problems.found) > before or None in bounds:
        return None
    lower, upper = -int(bounds[0] or 0), int(bounds[1] or 0)
    same = compile_same_window(join, problems)
    if same:
        lower, upper = 1 - same[0], same[0] - 1
    left, right = make_sides(join, records)
    record = records[join.left]
    made = CompiledJoin(
        join.name,
        left,
        right,
        compile_keys(join, left, right, problems),
        lower,
        upper,
        None,
        record.selective,
        same,
        copies=join.copies,
        lookups=frozenset(each.name for name in (join.left, join.right) for each in records[name].lookups),
    )
    check_reach(made, join, grid, problems)
    check_wish_for_copies(join, problems, unique=record.dedup)
    check_names_of_pairs(made, join, problems)
    where = None
    if join.where:
        where = problems.attempt(
            f"{place}.where", join.origin, lambda: compile_sound_condition(join.where, made.schema)
        )
    return replace(made, where=where) if len(problems.found) == before else None


def check_names_of_pairs(made: CompiledJoin, join: Join | AsOf, problems: Problems) -> None:
    """Note columns of pairs that are called alike."""
    names = [field.name.lower() for field in made.schema.fields]
    for name in sorted({each for each in names if names.count(each) > 1}):
        problems.note(
            f"derive[{join.name}]",
            join.origin,
            f"Two columns of a pair are called {name!r}.",
            "a column of a pair is called after its source, as in orders_shop: rename a source or a column.",
        )


def measure_bound(bound: str | Open) -> int:
    """Return a bound in microseconds, one less where it is open; DefinitionError where it is none."""
    if isinstance(bound, Open):
        return parse_duration(bound.duration, zero=True) // MICROSECOND - 1
    return parse_duration(bound, zero=True) // MICROSECOND


def compile_same_window(join: Join, problems: Problems) -> tuple[int, int] | None:
    """Return the size of a window join's windows and where one begins, in microseconds; note what cannot be."""
    place, window = f"derive[{join.name}].same", join.same
    if not window:
        return None
    if window.zone != "UTC":
        problems.note(
            place,
            join.origin,
            f"A window in {window.zone} is not a tumbling window in UTC.",
            f'write same=Tumbling("{window.size}").',
        )
        return None
    if (join.before, join.after) != (Join.before, Join.after):
        problems.note(
            place,
            join.origin,
            "A window join has no bounds: both rows are in the same window.",
            "remove before= and after=, or same=.",
        )
        return None
    size = problems.attempt(place, join.origin, lambda: parse_duration(window.size))
    offset = problems.attempt(
        place, join.origin, lambda: parse_duration(window.offset or "0 seconds", zero=True)
    )
    return None if size is None or offset is None else (size // MICROSECOND, offset // MICROSECOND)


def make_sides(join: Join | AsOf, records: Mapping[str, Record]) -> tuple[JoinSide, JoinSide]:
    """Return both sides with all their columns."""
    same = join.left == join.right
    left, right = (
        JoinSide(name, f"{side if same else name}_", records[name].schema.fields)
        for side, name in (("left", join.left), ("right", join.right))
    )
    return left, right


def compile_keys(
    join: Join | AsOf, left: JoinSide, right: JoinSide, problems: Problems
) -> tuple[tuple[str, str, bool], ...]:
    """Check what the join compares; problems are noted."""
    place, found = f"derive[{join.name}].on", []
    if not join.on:
        problems.note(
            place,
            join.origin,
            "The join compares no columns.",
            'write on={"order_id": "order_id"}: the left column, and the right one that it equals.',
        )
        return ()
    for pair in join.on.items():
        fields = []
        for name, side in zip(pair, (left, right), strict=True):
            schema = Schema(side.columns)
            if (field := find_column(schema, name)) is None:
                problems.note(
                    place,
                    join.origin,
                    f"Source {side.source!r} has no column {name!r}.",
                    format_known_columns(schema, name),
                )
            else:
                fields.append(field)
        if len(fields) < 2:
            continue
        if fields[0].type != fields[1].type:
            problems.note(
                place,
                join.origin,
                f"{pair[0]} is {fields[0].type}, {pair[1]} is {fields[1].type}: a join compares columns of one type.",
                "CAST one of them in select= of its source, and compare the column that this makes.",
            )
        else:
            problems.attempt(place, join.origin, partial(require_exact_key, pair[0], fields[0].type))
        found.append((*pair, pair[0] in join.null_safe))
    check_null_safe(join, problems)
    return tuple(found)


def check_null_safe(join: Join | AsOf, problems: Problems) -> None:
    """Note columns that the join does not compare."""
    for name in join.null_safe:
        if name not in join.on:
            problems.note(
                f"derive[{join.name}].null_safe",
                join.origin,
                f"{name!r} is not a left column of on=.",
                f"name left columns that the join compares: {', '.join(join.on)}.",
            )


def check_wish_for_copies(join: Join | AsOf, problems: Problems, *, unique: bool) -> None:
    """Note a wish about copies where nothing says which rows are copies."""
    if join.copies and not unique:
        problems.note(
            f"derive[{join.name}].copies",
            join.origin,
            "The joined sources have no event_id by which to know a copy.",
            "remove copies=, or give both sources event_id= and dedup_within=.",
        )


def check_reach(made: CompiledJoin, join: Join | AsOf, grid: Grid, problems: Problems) -> None:
    """Note bounds between which nothing is, or that go over too many intervals."""
    if made.lower > made.upper:
        problems.note(
            f"derive[{join.name}]",
            join.origin,
            "No right row is between the bounds: there is no time between them.",
            'say how far a right row may be from its left one: before="5 minutes", after="1 hour", or both.',
        )
    most = MOST_INTERVALS * grid.length
    if made.before + made.after > most:
        problems.note(
            f"derive[{join.name}]",
            join.origin,
            f"The join reaches from {format_reach(made.before)} before a left row to {format_reach(made.after)} after "
            f"it: over more than {MOST_INTERVALS} intervals of {format_exact_duration(grid.length)}.",
            f"keep both together within {format_exact_duration(most)}, or use longer intervals: "
            "batch=Batch(interval=...).",
        )


def format_reach(span: timedelta) -> str:
    """Write how far a join reaches; an open bound, and the end of a window, are as far as a closed one."""
    return format_exact_duration(-(-span // MILLISECOND) * MILLISECOND)


def compile_sound_condition(text: str, schema: Schema) -> Expression:
    """Compile a condition that has a value for every pair; DefinitionError."""
    return require_sound_expression(compile_condition(text, schema))


def require_sound_expression(made: Expression) -> Expression:
    """Return an expression; DefinitionError where it may have no value: a pair cannot be refused."""
    if made.guards:
        raise DefinitionError(
            f"{made.text!r} can fail: {made.guards[0].message}.",
            hint="use try_divide, try_cast and the like, or derive the column in select= of a source.",
        )
    return made
