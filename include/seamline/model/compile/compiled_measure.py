"""Measures made ready for the engines: expressions compiled, types resolved, states shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from seamline.model.compile.problems import Problems, compile_condition, require_name
from seamline.model.definition.pipeline import View
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.measures import Derived, Formula, Measure, NetSum, Part, Ratio, Sum, strip_type_parameters
from seamline.model.measures.monoid import NUMBERS
from seamline.model.types.schema import Field, Schema, parse_type

BEYOND = "__beyond"
"""Ends the name of a column that has totals as text, where no DECIMAL holds them."""


@dataclass(frozen=True)
class CompiledMeasure:
    """A measure of a view whose types are known."""

    name: str
    """The name of its column."""
    measure: Measure
    """The measure as declared."""
    expression: Expression | None
    """Its expression with ``where=`` in it, None for none."""
    input: str
    """The Spark type of the expression."""
    stored: str
    """Names its state columns: measures with one state have the name of the first of them."""
    operands: tuple[CompiledMeasure, ...] = ()
    """The measures that a derived one is made of, which has no state of its own."""
    shown: Expression | None = None
    """A formula's expression over its operands, by the names of its parts."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """List the state columns by their stored names, ``<measure>__<part>``."""
        return tuple(
            replace(part, name=f"{self.stored}__{part.name}") for part in self.measure.parts(self.input)
        )

    @property
    def result(self) -> str:
        """Return the Spark type of the presented value."""
        return self.measure.result(self.input)

    @property
    def beyond(self) -> str:
        """Name the column that has the total, as text, where no DECIMAL holds it; empty where one always does."""
        exact = type(self.measure) in (Sum, NetSum) and self.measure.carries(self.input)  # type: ignore[attr-defined]
        return f"{self.name}{BEYOND}" if exact else ""

    @property
    def sources(self) -> tuple[CompiledMeasure, ...]:
        """List the measures with the states that present this one."""
        return self.operands or (self,)


def compile_measures(view: View, schema: Schema, problems: Problems) -> tuple[CompiledMeasure, ...]:
    """Compile a view's measures in their order; note the problems of those that are left out."""
    made: dict[str, CompiledMeasure] = {}
    owners: dict[object, str] = {}

    def attempt(name: str, make: Callable[[], CompiledMeasure]) -> None:
        found = problems.attempt(format_measure_place(view, name), view.origin, make)
        if found is not None:
            made[name] = found

    stated = {name for name, each in view.measures.items() if not isinstance(each, Derived)}
    for name, measure in view.measures.items():
        if name in stated:
            attempt(name, partial(compile_stateful_measure, name, measure, schema, owners))
    for name, measure in view.measures.items():
        if isinstance(measure, Formula):
            attempt(name, partial(compile_formula, name, measure, schema, owners))
        elif isinstance(measure, Ratio) and not {measure.above, measure.below} & (stated - made.keys()):
            attempt(name, partial(compile_ratio, name, measure, made))
    return tuple(made[name] for name in view.measures if name in made)


def format_measure_place(view: View, name: str) -> str:
    """Name a measure's field in the definition."""
    return f"views[{view.name}].measures[{name}]"


def compile_stateful_measure(
    name: str, measure: Measure, schema: Schema, owners: dict[object, str]
) -> CompiledMeasure:
    """Compile a measure that has a state; DefinitionError. ``owners`` are the states so far and their names."""
    if measure.where:
        compile_condition(measure.where, schema)
    if measure.of:
        measure.check(compile_expression(measure.of, schema).type.spark)
    elif measure.kind != "count":
        raise DefinitionError(
            f"{measure.kind} needs an expression.", hint=f'for example: {measure.kind}("column").'
        )
    expression = compile_expression(measure.text, schema) if measure.text else None
    input = expression.type.spark if expression else "BIGINT"
    state = (measure.monoid, input, measure.text)
    return CompiledMeasure(name, measure, expression, input, owners.setdefault(state, name))


def compile_formula(
    name: str, formula: Formula, schema: Schema, owners: dict[object, str]
) -> CompiledMeasure:
    """Compile the parts of a formula and what it makes of them; DefinitionError."""
    if not formula.made_of:
        raise DefinitionError(
            f"formula({formula.sql!r}) has no parts.",
            hint='for example: formula("total / n", total=sum("x"), n=count()).',
        )
    operands = []
    for part, measure in formula.made_of.items():
        require_name(part)
        if not isinstance(measure, Measure) or isinstance(measure, Derived):
            raise DefinitionError(
                f"The part {part!r} is {measure!r}, which is not a measure with a state.",
                hint="a formula combines counts, sums and the like; write the ratio into the formula.",
            )
        operands.append(compile_stateful_measure(f"{name}__{part}", measure, schema, owners))
    columns = zip(formula.made_of, operands, strict=True)
    shown = compile_expression(
        formula.sql, Schema(tuple(Field(part, parse_type(each.result, part)) for part, each in columns))
    )
    if shown.guards:
        raise DefinitionError(
            f"{formula.sql!r} can fail: {shown.guards[0].message}.",
            hint="use try_divide, try_add and the like, which return NULL instead.",
        )
    return CompiledMeasure(name, formula, None, shown.type.spark, name, tuple(operands), shown)


def compile_ratio(name: str, ratio: Ratio, known: Mapping[str, CompiledMeasure]) -> CompiledMeasure:
    """Find the operands of a ratio; DefinitionError where they are no numbers of the view."""
    if ratio.of or ratio.where:
        raise DefinitionError(
            "A ratio takes no expression and no where=.", hint="set where= on the two measures instead."
        )
    numbers = [each for each in known if not known[each].operands and is_number(known[each])]
    for operand in (ratio.above, ratio.below):
        if operand not in numbers:
            raise DefinitionError(
                f"ratio({ratio.above!r}, {ratio.below!r}): {operand!r} is not a measure of the view that "
                "has a state and presents a number.",
                hint=f"name two of these: {', '.join(numbers) or 'none'}.",
            )
    return CompiledMeasure(name, ratio, None, "", name, (known[ratio.above], known[ratio.below]))


def is_number(measure: CompiledMeasure) -> bool:
    """Return whether a measure presents one number."""
    return strip_type_parameters(measure.result) in NUMBERS
