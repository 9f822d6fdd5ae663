"""A view over the rows of a join made ready for the engines: of pairs, of left rows, and of those that have a pair."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from seamline.model.compile.compiled_join import (
    KIND,
    LEFT,
    MATCHED,
    PAIR,
    CompiledJoin,
)
from seamline.model.compile.compiled_view import CompiledView, compile_view
from seamline.model.compile.join_rules import require_sound_expression
from seamline.model.compile.problems import Problems, format_known_columns
from seamline.model.compile.record_rules import Record, restrict_condition
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import CountWindow
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.measures import Count, Formula, Measure
from seamline.model.time.intervals import Grid
from seamline.model.types.schema import Schema

UNMATCHED = "unmatched"
OF_LEFT = (LEFT, MATCHED, UNMATCHED)
"""What ``count(of=)`` may count beside pairs."""
IN_ORDER = ("first", "last")
"""Measures for which two pairs of one left row would have no order."""


def list_kinds(view: View) -> tuple[str, ...]:
    """List the kinds of derived rows that a view counts."""
    of_left = list(list_counts(view.measures.values()))
    said = {each.of for each in of_left}
    there = {
        PAIR: not of_left or any(each not in of_left for each in flatten(view.measures.values())),
        LEFT: bool(said & {LEFT, UNMATCHED}),
        MATCHED: bool(said & {MATCHED, UNMATCHED}),
    }
    return tuple(kind for kind, counted in there.items() if counted)


def flatten(measures: Iterable[object]) -> Iterator[Measure]:
    """List measures with a state, and those that formulas are made of."""
    for each in measures:
        if isinstance(each, Formula):
            yield from flatten(each.made_of.values())
        elif isinstance(each, Measure) and each.kind != "ratio":
            yield each


def list_counts(measures: Iterable[object]) -> Iterator[Count]:
    """List the counts of left rows."""
    return (each for each in flatten(measures) if isinstance(each, Count) and each.of in OF_LEFT)


def restrict_to_kind(measure: Measure, kind: str) -> Measure:
    """Let a measure see the rows of one kind alone."""
    own = f"{KIND} = '{kind}'"
    return replace(measure, where=f"{own} AND ({measure.where})" if measure.where else own)


def rewrite_measure(measure: Measure) -> Measure:
    """Return a measure of derived rows as one of the rows of a kind."""
    if isinstance(measure, Formula):
        if any(isinstance(each, Count) and each.of == UNMATCHED for each in measure.made_of.values()):
            raise DefinitionError(
                "A formula cannot be made of count(of='unmatched').",
                hint="make it of count('left') and count('matched'), and subtract: try_subtract(l, m).",
            )
        return replace(
            measure, made_of={name: rewrite_measure(each) for name, each in measure.made_of.items()}
        )
    if isinstance(measure, Count) and measure.of in OF_LEFT:
        plain = replace(measure, of="")
        if measure.of != UNMATCHED:
            return restrict_to_kind(plain, measure.of)
        parts = {"l": restrict_to_kind(plain, LEFT), "m": restrict_to_kind(plain, MATCHED)}
        return Formula(sql="try_subtract(l, m)", made_of=parts)
    return restrict_to_kind(measure, PAIR) if measure.kind != "ratio" else measure


def compile_derived_view(
    pipeline: Pipeline, view: View, join: CompiledJoin, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view of a join's rows, without a fingerprint; note its problems and return None where it has any."""
    before, place = len(problems.found), f"views[{view.name}]"
    check_derived_view(view, join, problems)
    kinds, measures = list_kinds(view), dict(view.measures)
    if kinds != (PAIR,):
        for name, measure in view.measures.items():
            made = problems.attempt(
                f"{place}.measures[{name}]",
                view.origin,
                lambda m=measure: rewrite_measure(m),  # type: ignore[misc]
            )
            measures[name] = made or measure
    if len(problems.found) > before:
        return None
    record = Record(join.schema)
    compiled = compile_view(pipeline, replace(view, measures=measures), record, grid, problems)
    if compiled is None:
        return None
    for field, expression in list_expressions(compiled):
        problems.attempt(
            f"{place}.{field}",
            view.origin,
            lambda e=expression: require_sound_expression(e),  # type: ignore[misc]
        )
    if len(problems.found) > before:
        return None
    names = ", ".join(f"'{kind}'" for kind in kinds)
    own = compile_expression(f"`{KIND}` IN ({names})", Schema(join.schema.fields))
    return replace(compiled, where=restrict_condition(compiled.where, own), join=replace(join, kinds=kinds))


def list_expressions(view: CompiledView) -> Iterator[tuple[str, Expression]]:
    """List a compiled view's expressions with the fields that they are of."""
    if view.where:
        yield "where", view.where
    for measure in view.measures:
        for each in measure.sources:
            if each.expression:
                yield f"measures[{measure.name}]", each.expression


def check_derived_view(view: View, join: CompiledJoin, problems: Problems) -> None:
    """Note what a view of a join's rows cannot have."""
    place = f"views[{view.name}]"
    if KIND in view.keys or any(re.search(rf"\b{KIND}\b", text) for text in list_texts(view)):
        problems.note(place, view.origin, f"There is no column {KIND!r}.", format_known_columns(join.schema))
    if isinstance(view.window, CountWindow):
        problems.note(
            f"{place}.window",
            view.origin,
            "Pairs have no order in which to count them.",
            "use a window in time.",
        )
    if view.explode:
        problems.note(
            f"{place}.explode",
            view.origin,
            "A view of pairs has no explode.",
            "explode in a view of a source.",
        )
    for name, measure in view.measures.items():
        if any(each.kind in IN_ORDER for each in flatten([measure])):
            problems.note(
                f"{place}.measures[{name}]",
                view.origin,
                "Two pairs of one left row have no order.",
                "use min, max or collect_distinct.",
            )
    if any(list_counts(view.measures.values())):
        check_left_rows(view, join, problems)


def check_left_rows(view: View, join: CompiledJoin, problems: Problems) -> None:
    """Note where a view that counts left rows reads the right side, which they do not have."""
    place, of_right = f"views[{view.name}]", {field.name for field in join.right.fields}
    for key in view.keys:
        if key in of_right:
            problems.note(
                f"{place}.keys",
                view.origin,
                f"{key!r} is a column of the right side, which left rows without a pair do not have.",
                "use keys of the left side, or count pairs only.",
            )
    for name, measure in view.measures.items():
        if any(compile_columns(each.where, join) & of_right for each in list_counts([measure])):
            problems.note(
                f"{place}.measures[{name}]",
                view.origin,
                "Its where= reads the right side, which left and matched rows do not have.",
                "put the condition into where= of the join.",
            )
    if compile_columns(view.where, join) & of_right:
        problems.note(
            f"{place}.where",
            view.origin,
            "The condition reads the right side, which left rows without a pair do not have.",
            "put it into where= of the join.",
        )


def list_texts(view: View) -> Iterator[str]:
    """List the expressions of a view as they are written."""
    yield view.where
    for each in flatten(view.measures.values()):
        yield from (each.of, each.where)


def compile_columns(text: str, join: CompiledJoin) -> frozenset[str]:
    """List the columns of a condition; none where it is none, which is noted elsewhere."""
    try:
        return compile_expression(text, join.schema).columns if text else frozenset()
    except DefinitionError:
        return frozenset()


def narrow_joins(views: Sequence[CompiledView]) -> tuple[CompiledView, ...]:
    """Let each join read the columns, and make the kinds of rows, that any of its views needs."""
    found = []
    for view in views:
        if view.join is None:
            found.append(view)
            continue
        mine = [each for each in views if each.join and each.of == view.of]
        used = frozenset[str]().union(*map(list_read_columns, mine))
        wanted = {kind for each in mine if each.join for kind in each.join.kinds}
        kinds = [kind for kind in (PAIR, LEFT, MATCHED) if kind in wanted]
        found.append(replace(view, join=view.join.narrowed(used, kinds)))
    return tuple(found)


def list_read_columns(view: CompiledView) -> frozenset[str]:
    """List the columns that a view reads."""
    keys = frozenset(key.name for key in view.keys)
    return keys.union(*(made.columns for _, made in list_expressions(view)))
