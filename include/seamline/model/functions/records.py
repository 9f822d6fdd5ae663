"""Records of declared columns: the states of functions, and what they emit."""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from seamline.model.errors import DefinitionError
from seamline.model.functions.frozen import make_freezer
from seamline.model.time.intervals import format_utc_instant
from seamline.model.types.schema import Field, Schema, TypeKind

Values = tuple[Any, ...]
OF_ANY_LENGTH = (TypeKind.STRING, TypeKind.BINARY)
MOST_LETTERS = 1_000
"""Letters of a state that are written."""
POINTER = 32
"""Bytes of a value beside its own: about what Python takes for one."""


def parse_columns(text: object, what: str) -> tuple[Field, ...]:
    """Read columns in DDL, none of an empty text; DefinitionError says of ``what`` they are."""
    if not isinstance(text, str):
        raise DefinitionError(
            f"{what} is of type {type(text).__name__}, not a text of columns.",
            hint='write "total DOUBLE, seen BIGINT".',
        )
    try:
        fields = Schema.parse(text).fields if text.strip() else ()
    except DefinitionError as error:
        raise DefinitionError(f"{what}: {error.message}", hint=error.hint) from None
    for field in fields:
        if keyword.iskeyword(field.name):
            raise DefinitionError(
                f"{what} has a column {field.name!r}, which is a word of Python.", hint="choose another name."
            )
    return fields


def make_record_type(name: str, fields: Sequence[Field]) -> Any:
    """Make the class of tuples whose values have the names of columns."""
    made: Any = namedtuple(name, [field.name for field in fields])  # type: ignore[misc]
    return made


def keep(value: Any) -> Any:
    """Return a value that is frozen."""
    return value


def format_value(value: Any) -> str:
    """Write a frozen value for people: exact numbers and instants as they are read elsewhere, text in quotes."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return format_utc_instant(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {format_value(each)}' for name, each in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(format_value, value))}]"
    return "NULL" if value is None else repr(value)


def measure_value(value: Any) -> int:
    """Return about how many bytes a frozen value has, with all of its parts."""
    if isinstance(value, str | bytes):
        return POINTER + len(value)
    if isinstance(value, tuple):
        return POINTER + sum(map(measure_value, value))
    if isinstance(value, Mapping):
        return POINTER + sum(POINTER + len(name) + measure_value(each) for name, each in value.items())
    return POINTER


class RecordFreezer:
    """Freezes tuples with a value for each of some columns."""

    def __init__(self, what: str, fields: Sequence[Field]) -> None:
        self.what, self.fields = what, tuple(fields)
        self.named = make_record_type("Values", fields)
        self.make_named = partial(tuple.__new__, self.named)
        self.freezers = [make_freezer(field.type) for field in fields]
        self.required = [at for at, field in enumerate(fields) if not field.nullable]
        self.nested = [at for at, field in enumerate(fields) if field.type.nested]
        self.growing = [
            at for at, field in enumerate(fields) if field.type.nested or field.type.kind in OF_ANY_LENGTH
        ]

    def freeze(self, values: Sequence[Any], like: Values | None = None) -> Values:
        """Return a record; TypeError where it is none. What is the very value of ``like`` is frozen already."""
        if len(values) != len(self.freezers):
            raise TypeError(f"{self.what} has {len(values)} values, not one for each of {self.list_names()}")
        freezers = self.freezers
        if self.nested and like is not None and any(values[at] is like[at] for at in self.nested):
            freezers = [
                keep if value is old else each
                for each, value, old in zip(freezers, values, like, strict=True)
            ]
        try:
            found: Values = self.make_named(
                [freeze(value) for freeze, value in zip(freezers, values)]  # noqa: B905 - as many
            )
        except TypeError:
            self.explain(values)
            raise
        for at in self.required:
            if found[at] is None:
                raise TypeError(f"{self.what}.{self.fields[at].name} is NULL, and is declared NOT NULL")
        return found

    def explain(self, values: Sequence[Any]) -> None:
        """Raise TypeError for the first value that its column cannot hold, with the column's name."""
        for freeze, field, value in zip(self.freezers, self.fields, values, strict=True):
            try:
                freeze(value)
            except TypeError as error:
                raise TypeError(f"{self.what}.{field.name}: {error}") from None

    def name_values(self, values: Sequence[Any], named: dict[str, Any]) -> Sequence[Any]:
        """Return values in the order of the columns, some of which are given by name; TypeError for other names."""
        if not named:
            return values
        rest = [field.name for field in self.fields[len(values) :]]
        if named.keys() - set(rest):
            other = min(named.keys() - set(rest))
            raise TypeError(
                f"{self.what} has no column {other!r} to be given; its columns are {self.list_names()}"
            )
        return [*values, *(named.get(name) for name in rest)]

    def measure(self, values: Values) -> int:
        """Return about how many bytes the values have that may have any number of them."""
        return sum(measure_value(values[at]) for at in self.growing)

    def describe(self, values: Values) -> str:
        """Write the values with their columns' names, at most ``MOST_LETTERS`` of them."""
        said = ", ".join(
            f"{field.name}={format_value(value)}" for field, value in zip(self.fields, values, strict=True)
        )
        return said if len(said) <= MOST_LETTERS else f"{said[:MOST_LETTERS]}..."

    def list_names(self) -> str:
        """List the columns' names."""
        return f"({', '.join(field.name for field in self.fields)})"
