"""What is wrong with a definition, gathered with the place of each problem."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from seamline.model.definition.origin import Origin
from seamline.model.errors import BadRange, DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Field, Schema, SqlType

T = TypeVar("T")
INEXACT = ("DOUBLE", "BINARY")
"""Types of which engines do not agree when two values are equal."""
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

    def check_name(self, field: str, origin: Origin, name: str) -> bool:
        """Note a name that no table can bear, and return whether it is none of those."""
        return self.attempt(field, origin, lambda: require_name(name)) is not None


def require_name(name: str) -> str:
    """Return a name of a part of a definition; DefinitionError where no table can bear it."""
    if is_name(name):
        return name
    near = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower().strip("_0123456789")
    near = re.sub("_+", "_", near)
    raise DefinitionError(
        f"{name!r} is not a valid name.",
        hint="use lower-case letters, digits and single underscores"
        + (f', as in "{near}".' if is_name(near) else "."),
    )


def is_name(name: str) -> bool:
    """Return whether a part of a definition can be called so."""
    return bool(NAME.fullmatch(name)) and "__" not in name


def compile_condition(text: str, schema: Schema) -> Expression:
    """Compile a condition; DefinitionError where it is not one."""
    expression = compile_expression(text, schema)
    if expression.type.spark != "BOOLEAN":
        raise DefinitionError(f"{text!r} is {expression.type.spark}, not a condition.", hint="compare it.")
    return expression


def require_exact_key(name: str, type: SqlType, *, instead: str = "") -> None:
    """Raise DefinitionError where values of a column, or of an expression, are not compared to the last digit.

    ``instead`` says what to write; for a column it is another one, which select= makes of it.
    """
    if not type.nested and type.spark not in INEXACT:
        return
    made = "its parts" if type.nested else f"a CAST({name} AS ...)"
    raise DefinitionError(
        f"{name} is {type}.",
        hint=f"a key must compare exactly: {instead or f'name {made} in select=, and use that'}.",
    )


def find_column(schema: Schema, name: str) -> Field | None:
    """Find a column by its exact name."""
    return next((field for field in schema.fields if field.name == name), None)


def format_known_columns(schema: Schema, wanted: str = "") -> str:
    """Say which columns there are, and which of them is nearest to the one that is not."""
    near = schema.find_close_names(wanted)
    asked = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{asked}the schema has {', '.join(schema.names)}."
