"""One row for each item of an array: what a view counts where it explodes; the master keeps its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seamline.model.compile.problems import Problems, require_name
from seamline.model.compile.record_rules import Record
from seamline.model.definition.pipeline import View
from seamline.model.definition.windows import CountWindow
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Field, Schema, TypeKind

MADE = "_given"
"""The column of a view that takes each row of a transform in turn, whose parts are columns."""


@dataclass(frozen=True)
class Explode:
    """A column that takes each item of an array in turn; a record without items makes no row."""

    item: Field
    """The column that takes each item."""
    array: Expression
    """The array."""
    parts: tuple[Field, ...] = ()
    """The parts of an item that are columns of their own, beside it; none where an author named the item."""

    @property
    def seen(self) -> tuple[Field, ...]:
        """List the columns by which expressions and keys name what an item is."""
        return self.parts or (self.item,)

    @property
    def made(self) -> frozenset[str]:
        """Return the names of all columns that a record has not, but its rows have."""
        return frozenset(field.name for field in (self.item, *self.parts))


def compile_explode(declared: Mapping[str, str], schema: Schema) -> Explode | None:
    """Compile ``{"item": "array"}``; None for nothing. DefinitionError where it cannot be meant."""
    if not declared:
        return None
    if len(declared) > 1:
        raise DefinitionError(
            f"A view explodes one array, not {len(declared)}.", hint="declare a view for each of them."
        )
    ((name, text),) = declared.items()
    require_name(name)
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


def compile_row_explosion(record: Record) -> Explode | None:
    """Make the explosion by which every view counts the rows of a transform; None where it gives one at most."""
    if record.transform is None or record.transform.rows is None:
        return None
    (column,) = record.transform.schema.fields
    array = compile_expression(f"`{column.name}`", Schema((column,)))
    assert array.type.element is not None
    parts = tuple(replace(field, within=MADE) for field in record.transform.rows.fields)
    return Explode(Field(MADE, array.type.element), array, parts)


def compile_view_explosion(view: View, record: Record, problems: Problems) -> Explode | None:
    """Return what makes several rows of a record: a transform, or the view itself; note what it cannot have then."""
    given = compile_row_explosion(record)
    if given is None:
        return problems.attempt(
            f"views[{view.name}].explode", view.origin, lambda: compile_explode(view.explode, record.schema)
        )
    if view.explode:
        problems.note(
            f"views[{view.name}].explode",
            view.origin,
            "The view counts the rows that the transform gives for a record, and explodes nothing more.",
            "give a row for each item in the transform, or remove transform_rows=.",
        )
    if isinstance(view.window, CountWindow):
        problems.note(
            f"views[{view.name}].window",
            view.origin,
            "A view with CountWindow cannot count the rows of a transform: they have no order of their own.",
            "use a window in time, or remove transform_rows=.",
        )
    return given
