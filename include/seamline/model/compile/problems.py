"""What is wrong with a definition, gathered with the place of each problem."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from seamline.model.definition.origin import Origin
from seamline.model.errors import BadRange, DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Field, Schema

T = TypeVar("T")
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Problems:
    """Collects what is wrong, so that all of it can be said at once."""

    def __init__(self) -> None:
        self.found: list[DefinitionError] = []

    def attempt(self, field: str, origin: Origin, make: Callable[[], T]) -> T | None:
        """Return what ``make`` makes; where it raises, note the problem with its place and return None."""
        try:
            return make()
        except DefinitionError as error:
            self.found.append(error.at(field=field, file=origin.file, line=origin.line))
        except BadRange as error:
            self.note(field, origin, error.message, error.hint)
        return None

    def note(self, field: str, origin: Origin, message: str, hint: str) -> None:
        """Note a problem."""
        self.found.append(
            DefinitionError(message, hint=hint, field=field, file=origin.file, line=origin.line)
        )


def compile_condition(text: str, schema: Schema) -> Expression:
    """Compile a condition; DefinitionError where it is not one."""
    expression = compile_expression(text, schema)
    if expression.type.spark != "BOOLEAN":
        raise DefinitionError(f"{text!r} is {expression.type.spark}, not a condition.", hint="compare it.")
    return expression


def find_column(schema: Schema, name: str) -> Field | None:
    """Find a column by its exact name."""
    return next((field for field in schema.fields if field.name == name), None)


def format_known_columns(schema: Schema) -> str:
    """Say which columns there are."""
    return f"the schema has {', '.join(schema.names)}."
