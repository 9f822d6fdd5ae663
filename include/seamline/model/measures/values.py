"""Values of a type: what an engine returns of them, and small ones to try a measure on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import islice, product
from typing import Any

from seamline.model.types.decimals import rescale_decimal
from seamline.model.types.schema import SqlType, TypeKind

PLAIN: Mapping[TypeKind, type | tuple[type, ...]] = {
    TypeKind.STRING: str,
    TypeKind.BOOLEAN: bool,
    TypeKind.INT: int,
    TypeKind.BIGINT: int,
    TypeKind.DOUBLE: (float, int),
    TypeKind.DECIMAL: (Decimal, int),
    TypeKind.DATE: date,
    TypeKind.TIMESTAMP: datetime,
    TypeKind.BINARY: bytes,
}
BITS = {TypeKind.INT: 31, TypeKind.BIGINT: 63}


def normalize_stored_value(value: Any, type: SqlType) -> Any:
    """Return a value as it comes back from a table; TypeError where the type cannot hold it."""
    if value is None:
        return None
    if type.kind is TypeKind.STRUCT and isinstance(value, Mapping):
        if set(value) != {field.name for field in type.fields}:
            raise TypeError(f"{value!r} does not have the fields of {type}")
        return {field.name: normalize_stored_value(value[field.name], field.type) for field in type.fields}
    if type.kind is TypeKind.ARRAY and type.element and isinstance(value, list | tuple):
        return [normalize_stored_value(each, type.element) for each in value]
    expected = PLAIN.get(type.kind, ())
    fits = isinstance(value, expected) and isinstance(value, bool) == (type.kind is TypeKind.BOOLEAN)
    if not fits or isinstance(value, datetime) != (type.kind is TypeKind.TIMESTAMP):
        raise TypeError(f"{value!r} is not of type {type}")
    return normalize_plain_value(value, type)


def normalize_plain_value(value: Any, type: SqlType) -> Any:
    """Return a plain value in the one form of its type; TypeError where it does not fit."""
    match type.kind:
        case TypeKind.INT | TypeKind.BIGINT if not -(2 ** BITS[type.kind]) <= value < 2 ** BITS[type.kind]:
            raise TypeError(f"{value} is out of the range of {type}")
        case TypeKind.DOUBLE:
            return float(value)
        case TypeKind.DECIMAL:
            return normalize_decimal(Decimal(value), type)
        case TypeKind.TIMESTAMP if value.tzinfo is None:
            raise TypeError(f"{value!r} has no time zone")
        case TypeKind.TIMESTAMP:
            return value.astimezone(UTC)
    return value


def normalize_decimal(value: Decimal, type: SqlType) -> Decimal:
    """Return a decimal with all digits of its scale; TypeError where it has more, or is too large."""
    try:
        return rescale_decimal(value, type.precision, type.scale)
    except ValueError as error:
        raise TypeError(str(error)) from None


def list_sample_values(type: SqlType) -> list[Any]:
    """List a few values of a type, the simplest first; sums of the doubles among them are exact."""
    numbers = [0, 1, 3, -1, 2, 10, -7, 100]
    match type.kind:
        case TypeKind.STRUCT:
            columns = [list_sample_values(field.type) for field in type.fields]
            rows = islice(zip(*(column * 8 for column in rotate_columns(columns)), strict=False), 12)
            names = [field.name for field in type.fields]
            return [dict(zip(names, row, strict=True)) for row in rows]
        case TypeKind.ARRAY:
            items = list_sample_values(type.element) if type.element else []
            return [
                [],
                *([each] for each in items[:3]),
                *(list(pair) for pair in product(items[:2], repeat=2)),
            ]
        case TypeKind.MAP:
            items = list_sample_values(type.element) if type.element else []
            return [{}, {"a": items[0]}, {"a": items[0], "b": items[-1]}]
        case TypeKind.DOUBLE:
            return [*map(float, numbers), 0.5, -2.25]
        case TypeKind.DECIMAL:
            fitting = (number for number in numbers if abs(number) < 10**type.precision)
            return [Decimal(number).scaleb(-type.scale) for number in fitting]
        case TypeKind.DATE:
            return [date(2024, 1, 1) + timedelta(days=number) for number in numbers]
        case TypeKind.TIMESTAMP:
            return [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=number) for number in numbers]
    others: dict[TypeKind, list[Any]] = {
        TypeKind.STRING: ["", "a", "b", "ab", "10", " ", "\u00e9"],
        TypeKind.BOOLEAN: [False, True],
        TypeKind.BINARY: [b"", b"a", b"\x00"],
    }
    return others.get(type.kind, numbers)


def rotate_columns(columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Turn each column by one more than the one before it, so that rows differ in their parts."""
    return [[*column[at % len(column) :], *column[: at % len(column)]] for at, column in enumerate(columns)]
