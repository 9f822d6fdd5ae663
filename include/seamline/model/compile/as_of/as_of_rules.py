"""Which as-of joins a definition declares, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import CompiledJoin, JoinSide
from seamline.model.compile.derived_names import check_derived_name
from seamline.model.compile.join_rules import (
    check_names_of_pairs,
    check_reach,
    check_sides,
    check_wish_for_copies,
    compile_keys,
    compile_sound_condition,
    make_sides,
)
from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import Record
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.time.intervals import Grid, parse_duration
from seamline.model.time.zone_clock import MICROSECOND


def as_of_facts(joined: AsOf) -> dict[str, Any]:
    """List all that says which version each left row has."""
    return {
        "left": joined.left,
        "versions": joined.versions,
        "on": sorted(joined.on.items()),
        "at_most": joined.at_most,
        **({"left_where": joined.left_where} if joined.left_where else {}),
        **({"versions_where": joined.versions_where} if joined.versions_where else {}),
        **({"null_safe": sorted(joined.null_safe)} if joined.null_safe else {}),
    }


def compile_as_of_joins(
    pipeline: Pipeline, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> dict[str, CompiledJoin]:
    """Compile the as-of joins of a pipeline by name; note the problems of those that are left out."""
    found: dict[str, CompiledJoin] = {}
    for joined in pipeline.derive if records else ():
        if not isinstance(joined, AsOf) or not check_derived_name(pipeline, joined, records, problems):
            continue
        check_sides(pipeline, joined, records, problems)
        if {*joined.sources} <= {*records} and (made := compile_as_of(joined, records, grid, problems)):
            found[joined.name] = made
    return found


def compile_as_of(
    joined: AsOf, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> CompiledJoin | None:
    """Compile one as-of join; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{joined.name}]"
    reach = problems.attempt(f"{place}.at_most", joined.origin, partial(measure_reach, joined.at_most))
    if reach is None:
        return None
    left, right = make_sides(joined, records)
    record = records[joined.left]
    made = CompiledJoin(
        joined.name,
        left,
        right,
        compile_keys(joined, left, right, problems),
        -reach,
        0,
        None,
        record.selective,
        copies=joined.copies,
        lookups=frozenset(each.name for name in joined.sources for each in records[name].lookups),
        latest=True,
    )
    check_reach(made, joined, grid, problems)
    check_wish_for_copies(joined, problems, unique=record.dedup)
    check_names_of_pairs(made, joined, problems)
    sides = [
        compile_side(joined, side, setting, records, problems)
        for side, setting in ((left, "left_where"), (right, "versions_where"))
    ]
    return replace(made, left=sides[0], right=sides[1]) if len(problems.found) == before else None


def measure_reach(at_most: str) -> int:
    """Return in microseconds how much older a version may be; DefinitionError without a bound."""
    if not at_most:
        raise DefinitionError(
            "Nothing says how old a version may be: each left row would be looked up in all rows there are.",
            hint='write at_most="7 days": how much older than its left row a version may be.',
        )
    return parse_duration(at_most) // MICROSECOND


def compile_side(
    joined: AsOf, side: JoinSide, setting: str, records: Mapping[str, Record], problems: Problems
) -> JoinSide:
    """Return a side with the condition on its rows."""
    text = getattr(joined, setting)
    if not text:
        return side
    compiled = partial(compile_sound_condition, text, records[side.source].schema)
    where = problems.attempt(f"derive[{joined.name}].{setting}", joined.origin, compiled)
    return replace(side, where=where)
