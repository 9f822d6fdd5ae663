"""What a reader returns: columns made from bytes, and the SQL that types them and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from seamline.model.compile.changes.deletions import Deletion
from seamline.model.definition.format_base import Format
from seamline.model.types.schema import Field, Schema, SqlType, TypeKind

SHOWN = 120
DAY = r"\d{4}-\d{2}-\d{2}"
ISO = rf"{DAY}([T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,9}})?)?(Z|[+-]\d{{2}}(:?\d{{2}})?)?)?"


class Reader:
    """Reads records of one format. Fields are named by their place in the schema, from 1.

    ``empty``: whether a value of no bytes can be a record. ``added`` of the columns, the last ones, may be absent
    from records that were sent before there were any. ``trusting``: the SQL fails where a record
    is malformed; it is to be written again with this off. ``parts``: a comma is between
    any two parts of a record. ``exact``: a text may spell a DECIMAL with an exponent. ``deletion``: how a row says that
    a row was deleted, where one does.
    """

    empty = False
    trusting = False
    parts = False
    exact = False
    deletion: Deletion | None = None

    def __init__(self, format: Format, schema: Schema, added: int = 0) -> None:
        self.format: Any = format
        self.schema = schema
        self.added = added

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        """Make the columns that the SQL reads from a column of bytes, row for row."""
        return {"_text": decode_utf8_column(values)}

    def steps(self) -> Iterator[str]:
        """List select lists; each may use the columns of those before it."""
        return iter(())

    def value_sql(self, field: Field, at: int) -> str:
        """Write the typed value of a field; NULL where it is missing, null or of another type, or no record is."""
        raise NotImplementedError

    def tombstone_sql(self) -> tuple[str, str]:
        """Write (condition, detail) of a value that is NULL and means nothing."""
        return "_value IS NULL", "''"

    def refused_sql(self) -> Iterator[tuple[str, str, str]]:
        """List (condition, reason, detail) of what a record is refused for before it is looked at."""
        return iter(())

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        """List (condition, detail) of what makes a whole record malformed."""
        raise NotImplementedError

    def absent_sql(self, field: Field, at: int, *, null: bool) -> tuple[str, str]:
        """Write (condition, detail) of a field that is not there; ``null``: or is null."""
        raise NotImplementedError

    def mistyped_sql(self, field: Field, at: int) -> tuple[str, str]:
        """Write (condition, detail) of a value that its type does not have; ``field`` is typed by then."""
        raise NotImplementedError


def decode_utf8_column(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read values as UTF-8; NULL where one is not."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array([decode_utf8(value) for value in values.to_pylist()], pa.string())])


def decode_utf8(value: bytes | None) -> str | None:
    """Read one value as UTF-8; None where it is not."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def cast_text_sql(type: SqlType, text: str) -> str:
    """Write the value that a text spells in a type other than STRING and DOUBLE; NULL where it spells none."""
    tried = f"TRY_CAST({text} AS {type.duckdb})"
    match type.kind:
        case TypeKind.DECIMAL:
            exact = rf"-?\d+(\.\d{{0,{type.scale}}}0*)?"
            return f"CASE WHEN regexp_full_match({text}, '{exact}') THEN {tried} END"
        case TypeKind.DATE:
            return f"CASE WHEN regexp_full_match({text}, '{DAY}') THEN {tried} END"
        case TypeKind.TIMESTAMP:
            return f"CASE WHEN regexp_full_match({text}, '{ISO}') THEN {tried} END"
        case TypeKind.BINARY:
            return f"TRY(from_base64({text}))"
    return tried
