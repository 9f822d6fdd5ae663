"""Measures made ready for the engines: expressions compiled, types resolved, states shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from seamline.model.definition import View
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.measures import Measure, Part, Ratio, family
from seamline.model.measures.monoid import NUMBERS
from seamline.model.problems import Problems, boolean
from seamline.model.schema import Schema


@dataclass(frozen=True)
class CompiledMeasure:
    """A measure of a view, its expression with the ``where=`` in it, and the expression's Spark type.

    ``stored`` names its state columns: measures with one state bear the name of the first of them.
    ``operands`` are the measures a derived one is made of; it has no state of its own.
    """

    name: str
    measure: Measure
    expression: Expression | None
    input: str
    stored: str
    operands: tuple[CompiledMeasure, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """List the state columns by their stored names, ``<measure>__<part>``."""
        return tuple(
            Part(f"{self.stored}__{part.name}", part.type) for part in self.measure.parts(self.input)
        )

    @property
    def result(self) -> str:
        """Give the Spark type of the presented value."""
        return self.measure.result(self.input)

    @property
    def sources(self) -> tuple[CompiledMeasure, ...]:
        """List the measures with the states that present this one."""
        return self.operands or (self,)


def compile_measures(view: View, schema: Schema, problems: Problems) -> tuple[CompiledMeasure, ...]:
    """Compile a view's measures in their order; note the problems of those that are left out."""
    made: dict[str, CompiledMeasure] = {}
    owners: dict[object, str] = {}
    stated = {name: each for name, each in view.measures.items() if not isinstance(each, Ratio)}
    ratios = {name: each for name, each in view.measures.items() if isinstance(each, Ratio)}
    for name, measure in stated.items():
        found = problems.attempt(place(view, name), view.origin, partial(stateful, name, measure, schema))
        if found is not None:
            state = (measure.monoid, found.input, measure.text)
            made[name] = replace(found, stored=owners.setdefault(state, name))
    for name, ratio in ratios.items():
        if {ratio.above, ratio.below} & (stated.keys() - made.keys()):
            continue
        found = problems.attempt(place(view, name), view.origin, partial(derived, name, ratio, made))
        if found is not None:
            made[name] = found
    return tuple(made[name] for name in view.measures if name in made)


def place(view: View, name: str) -> str:
    """Name a measure's field in the definition."""
    return f"views[{view.name}].measures[{name}]"


def stateful(name: str, measure: Measure, schema: Schema) -> CompiledMeasure:
    """Compile a measure that has a state; DefinitionError."""
    if measure.where:
        boolean(measure.where, schema)
    if measure.of:
        measure.check(compile_expression(measure.of, schema).type.spark)
    elif measure.kind != "count":
        raise DefinitionError(f"{measure.kind} needs an expression.", hint=f'{measure.kind}("column"), say.')
    if not measure.text:
        return CompiledMeasure(name, measure, None, "BIGINT", name)
    expression = compile_expression(measure.text, schema)
    return CompiledMeasure(name, measure, expression, expression.type.spark, name)


def derived(name: str, ratio: Ratio, known: Mapping[str, CompiledMeasure]) -> CompiledMeasure:
    """Find the operands of a ratio; DefinitionError where they are no numbers of the view."""
    if ratio.of or ratio.where:
        raise DefinitionError(
            "A ratio takes no expression and no where=.", hint="give the two measures their own where=."
        )
    numbers = [each for each in known if not known[each].operands and is_number(known[each])]
    for operand in (ratio.above, ratio.below):
        if operand not in numbers:
            raise DefinitionError(
                f"ratio({ratio.above!r}, {ratio.below!r}): {operand!r} is no measure of the view that "
                "has a state and presents a number.",
                hint=f"there are {', '.join(numbers) or 'none'}; name two of them.",
            )
    return CompiledMeasure(name, ratio, None, "", name, (known[ratio.above], known[ratio.below]))


def is_number(measure: CompiledMeasure) -> bool:
    """Tell whether a measure presents one number."""
    return family(measure.result) in NUMBERS
