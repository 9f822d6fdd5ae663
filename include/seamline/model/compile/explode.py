"""One row for each item of an array: what a view counts where it explodes; the master keeps its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seamline.model.compile.problems import NAME
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Field, Schema, TypeKind


@dataclass(frozen=True)
class Explode:
    """A column that takes each item of an array in turn; a record without items makes no row."""

    item: Field
    """The column that takes each item."""
    array: Expression
    """The array."""


def compile_explode(declared: Mapping[str, str], schema: Schema) -> Explode | None:
    """Compile ``{"item": "array"}``; None for nothing. DefinitionError where it cannot be meant."""
    if not declared:
        return None
    if len(declared) > 1:
        raise DefinitionError(
            f"A view explodes one array, not {len(declared)}.", hint="declare a view for each of them."
        )
    ((name, text),) = declared.items()
    if not NAME.fullmatch(name) or "__" in name:
        raise DefinitionError(
            f"{name!r} is not a valid name.", hint="use lower-case letters, digits and underscores."
        )
    if schema.field(name):
        raise DefinitionError(f"A column {name!r} already exists.", hint="choose another name.")
    array = compile_expression(text, schema)
    if array.type.kind is not TypeKind.ARRAY or array.type.element is None:
        raise DefinitionError(f"{text!r} is {array.type}, not an ARRAY.", hint="only an ARRAY has items.")
    if array.guards:
        raise DefinitionError(
            f"{text!r} can fail: {array.guards[0].message}.", hint="use get or try_element_at, or a column."
        )
    return Explode(Field(name, array.type.element), array)
