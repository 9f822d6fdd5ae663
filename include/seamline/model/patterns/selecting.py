"""What a match shows: ``count(fail)``, ``first(fail.at)``, ``ok.amount``, over the rows of a step or of the match."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from seamline.model.errors import DefinitionError
from seamline.model.functions.records import parse_columns
from seamline.model.measures.monoid import NUMBERS, ORDERED, Measure
from seamline.model.measures.plain import Average, Sum
from seamline.model.types.schema import BIGINT, DOUBLE, Field, Schema, SqlType, TypeKind, build_decimal_type

NAME = r"[A-Za-z]\w*"
CALL = re.compile(rf"({NAME})\s*\(\s*(?:(\*)|(?:({NAME})\s*\.\s*)?({NAME}))\s*\)", re.ASCII)
VALUE = re.compile(rf"(?:({NAME})\s*\.\s*)?({NAME})", re.ASCII)
COUNT, LAST = "count", "last"
MOST = 2**63
"""No BIGINT is as large."""


@dataclass(frozen=True)
class Selected:
    """A column of what a match shows."""

    name: str
    """Its name."""
    function: str
    """What is made of the values."""
    step: int | None
    """The number of the step whose rows it is about; None for all rows of the match."""
    column: str
    """The column whose values it is about; empty for the rows themselves."""
    type: SqlType
    """Its type."""

    def show(self, values: Sequence[Any], steps: Sequence[int]) -> Any:
        """Return what it shows of a match's values, each a row's whose step has a number."""
        if self.step is not None:
            values = [value for value, step in zip(values, steps, strict=True) if step == self.step]
        return FUNCTIONS[self.function](values)


def parse_select(select: Mapping[str, str], steps: Sequence[str], schema: Schema) -> tuple[Selected, ...]:
    """Read what a match shows, by name; DefinitionError for what is no step, column or function."""
    found = tuple(SelectReader(name, text, steps, schema).read() for name, text in select.items())
    parse_columns(", ".join(f"{each.name} {each.type}" for each in found), "select")
    return found


class SelectReader:
    """Reads the text of a column."""

    def __init__(self, name: str, text: str, steps: Sequence[str], schema: Schema) -> None:
        self.name, self.text, self.steps, self.schema = name, text, steps, schema

    def read(self) -> Selected:
        """Return the column."""
        if not isinstance(self.name, str) or not re.fullmatch(NAME, self.name, re.ASCII):
            self.refuse("is no column's name", "use letters, digits and _.")
        text = self.text.strip() if isinstance(self.text, str) else ""
        if call := CALL.fullmatch(text):
            return self.read_call(call[1].lower(), *call.groups()[1:])
        if value := VALUE.fullmatch(text):
            step = None if value[1] is None else self.find_step(value[1])
            return self.select(LAST, step, self.find_column(value[2]))
        self.refuse("cannot be read", 'write "count(*)", "count(fail)", "first(fail.at)" or "fail.at".')

    def read_call(self, function: str, star: str | None, step: str | None, name: str | None) -> Selected:
        """Read a call: of ``*``, of ``name`` or of ``step.name``."""
        if function not in FUNCTIONS:
            self.refuse(f"calls {function!r}, which is unknown", f"functions are {', '.join(FUNCTIONS)}.")
        if function == COUNT and (star or (step is None and name in self.steps)):
            number = None if name is None else self.find_step(name)
            return Selected(self.name, COUNT, number, "", BIGINT)
        if name is None:
            self.refuse(
                f"takes the {function} of rows", f'name a column: "{function}({self.steps[0]}.column)".'
            )
        if step is None and name in self.steps and self.schema.field(name) is None:
            self.refuse(
                f"takes the {function} of a step's rows", f'name a column: "{function}({name}.column)".'
            )
        return self.select(
            function,
            None if step is None else self.find_step(step),
            self.find_column(name, bare=step is None),
        )

    def select(self, function: str, step: int | None, field: Field) -> Selected:
        """Return a column about the values of a field."""
        spelled = field.type.kind.value
        takes = TAKES.get(function)
        if takes and spelled not in takes:
            self.refuse(
                f"takes the {function} of {field.name}, which is {field.type}",
                f"{function} takes {', '.join(takes)}.",
            )
        return Selected(self.name, function, step, field.name, find_result_type(function, field.type))

    def find_step(self, name: str) -> int:
        """Return a step's number."""
        if name not in self.steps:
            self.refuse(f"names a step {name!r}, which is unknown", f"steps are {', '.join(self.steps)}.")
        return self.steps.index(name)

    def find_column(self, name: str, *, bare: bool = True) -> Field:
        """Return a column of the rows."""
        field = self.schema.field(name)
        if field is None:
            steps = f"; steps are {', '.join(self.steps)}" if bare else ""
            known = self.schema.find_close_names(name) or self.schema.names
            self.refuse(
                f"names a column {name!r}, which is unknown", f"columns are {', '.join(known)}{steps}."
            )
        return field

    def refuse(self, why: str, hint: str) -> NoReturn:
        """Raise DefinitionError."""
        raise DefinitionError(f"select[{self.name!r}] = {self.text!r} {why}.", hint=hint)


def find_result_type(function: str, type: SqlType) -> SqlType:
    """Return the type of what a function makes of values of a type."""
    if function == COUNT:
        return BIGINT
    if function == "avg":
        return DOUBLE
    if function != "sum":
        return type
    if type.kind is TypeKind.DECIMAL:
        return build_decimal_type(38, type.scale)
    return DOUBLE if type.kind is TypeKind.DOUBLE else BIGINT


def present(measure: Measure, values: Sequence[Any]) -> Any:
    """Return what a measure presents of values."""
    state = measure.zero
    for value in values:
        state = measure.plus(state, measure.prepare(value))
    return measure.present(state)


def total(values: Sequence[Any]) -> Any:
    """Add values up as the measure ``sum`` does; NULL where the type has no room for the total."""
    found = present(Sum(), values)
    return None if isinstance(found, int) and not -MOST <= found < MOST else found


def by_size(value: Any) -> tuple[bool, Any]:
    """Return what values are ordered by: NaN is larger than all numbers, as in both engines."""
    return value != value, value


def known(values: Sequence[Any]) -> list[Any]:
    """List the values that are not NULL."""
    return [value for value in values if value is not None]


FUNCTIONS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    COUNT: lambda values: len(known(values)),
    "first": lambda values: values[0] if values else None,
    LAST: lambda values: values[-1] if values else None,
    "sum": total,
    "min": lambda values: min(known(values), key=by_size, default=None),
    "max": lambda values: max(known(values), key=by_size, default=None),
    "avg": lambda values: present(Average(), values),
}
TAKES: Mapping[str, Sequence[str]] = {"sum": NUMBERS, "avg": NUMBERS, "min": ORDERED, "max": ORDERED}
