"""What a source says of the table whose changes its records are: the row, which change is newer, what deletes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from seamline.model.compile.changes.deletions import Deletion
from seamline.model.compile.join_rules import compile_sound_condition
from seamline.model.compile.problems import (
    Problems,
    find_column,
    format_known_columns,
    require_exact_key,
)
from seamline.model.definition.sources import Source
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.types.schema import Field, Schema, TypeKind

ORDERS = ("BIGINT", "INT", "TIMESTAMP", "STRING")
"""Types, beside DECIMAL, by whose values all engines put changes in one order."""


@dataclass(frozen=True)
class RowChanges:
    """Which row of a table each record of a source is a change of."""

    key: tuple[Field, ...]
    """The columns that say which row it is."""
    order: Field | None = None
    """The column whose greater value is the newer change; None for the order in which records were read."""
    deleted: Expression | None = field(default=None, repr=False)
    """True of a record by which the row was deleted; None where none is."""


def compile_row_changes(
    source: Source, schema: Schema, problems: Problems, deletion: Deletion | None = None
) -> RowChanges | None:
    """Compile what a source says of the changed table; note its problems; None where it says nothing.

    Where it does not say what deletes a row, its ``deletion`` does.
    """
    before = len(problems.found)
    key = tuple(
        found
        for name in source.key
        if (found := problems.attempt("source.key", source.origin, partial(require_key_column, name, schema)))
    )
    if len(set(source.key)) < len(source.key):
        problems.note(
            "source.key",
            source.origin,
            f"key={list(source.key)!r} names a column twice.",
            "name each column of the key once.",
        )
    order = deleted = None
    for name in ("order", "deleted"):
        if getattr(source, name) and not source.key:
            problems.note(
                f"source.{name}",
                source.origin,
                f"{name}= is about changes of rows, but key= is missing: it names the columns that identify a row.",
                'write key=["id"], for example: the columns that say which row of the table a record is about.',
            )
    if source.order:
        order = problems.attempt(
            "source.order", source.origin, partial(require_order_column, source.order, schema)
        )
    # What a definition says beside its column: a tombstone has nothing else to be known by.
    said = [each for each in (source.deleted, deletion.condition if deletion else "") if each]
    condition = said[0] if len(said) == 1 else " OR ".join(f"({each})" for each in said)
    if condition:
        deleted = problems.attempt(
            "source.deleted", source.origin, partial(compile_sound_condition, condition, schema)
        )
    if not key or len(problems.found) > before:
        return None
    return RowChanges(key, order, deleted)


def require_key_column(name: str, schema: Schema) -> Field:
    """Return a column that says which row a record is about; DefinitionError where it cannot."""
    found = require_column(name, schema)
    require_exact_key(name, found.type)
    return found


def require_order_column(name: str, schema: Schema) -> Field:
    """Return a column by which changes are newer; DefinitionError where engines would not agree on that."""
    found = require_column(name, schema)
    if not (found.type.spark in ORDERS or found.type.kind is TypeKind.DECIMAL):
        raise DefinitionError(
            f"{name} is {found.type}, which cannot be used as order=.",
            hint="name a BIGINT, INT, DECIMAL, TIMESTAMP or STRING; select= makes one of another column.",
        )
    return found


def require_column(name: str, schema: Schema) -> Field:
    """Return a column by its name; DefinitionError where there is none."""
    found = find_column(schema, name)
    if found is None:
        raise DefinitionError(f"There is no column {name!r}.", hint=format_known_columns(schema, name))
    return found
