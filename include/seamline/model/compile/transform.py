"""A user's own step from parsed columns to more columns: a Python function on Arrow tables, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.compile.problems import Problems
from seamline.model.definition.origin import Origin
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import DIGITS
from seamline.model.types.schema import Field, Schema, SqlType, TypeKind, has_decimals
from seamline.model.user_code import function_of, is_stand_in, name_of


@dataclass(frozen=True)
class Transform:
    """A user's function of Arrow tables."""

    name: str
    """``module:function``."""
    schema: Schema
    """The columns that it adds."""
    given: tuple[str, ...]
    """The names of the parsed columns that it is given."""
    exact: bool = False
    """Whether a double that would be rounded is refused as a DECIMAL."""
    rows: Schema | None = None
    """The columns of the rows that it gives for a record, any number of them; ``schema`` is then one ARRAY of them.
    None where it gives one at most."""
    gone: bool = False
    """Whether the function was edited or deleted since, so that it cannot be called."""


def makes_exactly(pipeline: Pipeline) -> bool:
    """Return whether a transform makes DECIMALs, and no double that it returns is rounded to one."""
    return pipeline.only_source.decimals == DIGITS and has_decimals(pipeline.transform_schema)


def compile_transform(
    pipeline: Pipeline, base: Schema, problems: Problems, added: Sequence[Field]
) -> Transform | None:
    """Find the user's own step and check what it declares; it is given no added column, which it could use unseen."""
    origin, name = pipeline.origin, name_of(pipeline.transform)
    if not name:
        for setting in ("transform_schema", "transform_version", "transform_rows"):
            if getattr(pipeline, setting):
                problems.note(setting, origin, "There is no transform.", 'add transform="module:function".')
        return None
    function = problems.attempt("transform", origin, lambda: function_of(name))
    schema = problems.attempt("transform_schema", origin, lambda: Schema.parse(pipeline.transform_schema))
    if function is None or schema is None:
        return None
    for field in schema.fields:
        if base.with_(*added).field(field.name):
            problems.note(
                "transform_schema",
                origin,
                f"The source already has a column {field.name!r}.",
                "rename the transform's column.",
            )
    given, exact = tuple(field.name for field in base.fields), makes_exactly(pipeline)
    gone = is_stand_in(function)
    if not (rows := pipeline.transform_rows):
        return Transform(name, schema, given, exact, gone=gone)
    if not problems.check_name("transform_rows", origin, rows):
        return None
    if schema.field(rows) or base.with_(*added).field(rows):
        problems.note("transform_rows", origin, f"A column {rows!r} already exists.", "choose another name.")
    held = SqlType(TypeKind.ARRAY, element=SqlType(TypeKind.STRUCT, fields=schema.fields))
    return Transform(name, Schema((Field(rows, held),)), given, exact, schema, gone)


def check_row_columns(transform: Transform, derived: Schema, origin: Origin, problems: Problems) -> None:
    """Note columns that are ``derived`` of a record and have the name of one of its rows: views have both."""
    for field in transform.rows.fields if transform.rows else ():
        if derived.field(field.name):
            problems.note(
                "transform_schema",
                origin,
                f"A column {field.name!r} is derived of the record.",
                "rename the transform's column: views have the columns of a record and of its rows.",
            )
