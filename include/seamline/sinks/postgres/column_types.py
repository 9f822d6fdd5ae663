"""What a Spark type becomes in PostgreSQL, and which changes of a column's type lose nothing."""

from __future__ import annotations

import re

from seamline.model.types.schema import SqlType, TypeKind

TYPES = {
    TypeKind.STRING: "text",
    TypeKind.BOOLEAN: "boolean",
    TypeKind.INT: "integer",
    TypeKind.BIGINT: "bigint",
    TypeKind.DOUBLE: "double precision",
    TypeKind.DATE: "date",
    TypeKind.TIMESTAMP: "timestamp with time zone",
    TypeKind.BINARY: "bytea",
    TypeKind.STRUCT: "jsonb",
    TypeKind.ARRAY: "jsonb",
    TypeKind.MAP: "jsonb",
}
"""The types by PostgreSQL's own names, as ``format_type`` tells them."""
DIGITS = {"integer": 10, "bigint": 19}
NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


def postgres_type(type: SqlType) -> str:
    """Return PostgreSQL's type for the values of a type."""
    if type.kind is TypeKind.DECIMAL:
        return f"numeric({type.precision},{type.scale})"
    return TYPES[type.kind]


def widens(held: str, wanted: str) -> bool:
    """Return whether each value of a column's type is one of another type of PostgreSQL, to the last digit."""
    if (held, wanted) in (("integer", "bigint"), ("integer", "double precision")):
        return True
    into = NUMERIC.fullmatch(wanted)
    if into is None:
        return False
    whole = int(into[1]) - int(into[2])
    if held in DIGITS:
        return whole >= DIGITS[held]
    out = NUMERIC.fullmatch(held)
    return bool(out and int(into[2]) >= int(out[2]) and whole >= int(out[1]) - int(out[2]))
