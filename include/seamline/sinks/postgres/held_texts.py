"""Rows of a table as JSON, alike whether they come from the view or are read back from PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.read.sinks.served_changes import UNCOMPARED
from seamline.lake.storage.arrow_types import arrow_of
from seamline.model.types.exact_json import dump_finite_json
from seamline.model.types.schema import Field
from seamline.sinks.json_values import encode_column, spell_each
from seamline.sinks.postgres.copied_rows import escape_texts, spell_jsonb
from seamline.sinks.row_shape import RowShape

LARGEST = 18
"""Digits of whole numbers of jsonb that are no doubles for sure."""


def list_told(shape: RowShape) -> list[Field]:
    """List the columns that are compared, those of the identity first."""
    return [field for field in shape.columns if field.name not in UNCOMPARED]


def read_as(kind: pa.DataType) -> pa.DataType:
    """Return the type as which values are read: text, where what PostgreSQL writes of them is nothing else to Arrow."""
    return pa.string() if pa.types.is_nested(kind) or pa.types.is_binary(kind) else kind


def spell_places(shape: RowShape, rows: pa.Table) -> pa.Array:
    """Write what tells rows apart as JSON objects."""
    return join_objects(shape.keys, rows)


def spell_values(shape: RowShape, rows: pa.Table) -> pa.Array:
    """Write rows as JSON objects."""
    return join_objects(list_told(shape), rows)


def join_objects(fields: Iterable[Field], rows: pa.Table) -> pa.Array:
    """Write columns of rows as JSON objects."""
    parts: list[Any] = []
    for field in fields:
        parts += [f"{', ' if parts else '{'}{dump_finite_json(field.name)}: ", spell(rows[field.name])]
    return pc.binary_join_element_wise(*parts, "}", "")


def spell(column: pa.ChunkedArray) -> pa.Array:
    """Write values as JSON; a double by its digits in quotes, so that one that is no number is not NULL."""
    values = column.combine_chunks()
    if pa.types.is_floating(values.type):
        return pc.fill_null(pc.binary_join_element_wise('"', values.cast(pa.string()), '"', ""), "null")
    return encode_column(values)


def as_read_back(shape: RowShape, rows: pa.Table) -> pa.Table:
    """Return rows of the serving table as they are read back once they were written."""
    columns = {
        field.name: read_back(rows[field.name]) for field in shape.columns if field.name in rows.schema.names
    }
    return pa.table(columns)


def read_back(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as it is read back."""
    return pa.chunked_array([read_back_values(each) for each in column.chunks], read_as(column.type))


def read_back_values(column: pa.Array) -> pa.Array:
    """Return values as they are read back."""
    if pa.types.is_string(column.type):
        return escape_texts(column)
    if pa.types.is_binary(column.type):
        return spell_each(column, lambda value: f"\\x{value.hex()}")
    if pa.types.is_nested(column.type):
        return spell_each(column, lambda value: normalize_json(spell_jsonb(value)))
    return column


def normalize_json(text: str) -> str:
    """Write JSON as PostgreSQL's and ours are alike: parts by name, a number as it is held here."""
    return json.dumps(json.loads(text, parse_int=read_whole, parse_float=read_double), sort_keys=True)


def read_whole(text: str) -> int | float:
    """Read a whole number of jsonb, in which a double may have three hundred digits."""
    return int(text) if len(text) <= LARGEST else read_double(text)


def read_double(text: str) -> int | float:
    """Read a number of jsonb; one without a fraction is a whole one, whatever zeros follow."""
    found = float(text)
    return int(found) if found.is_integer() else found


def normalize_held(fields: Iterable[Field], rows: pa.Table) -> pa.Table:
    """Return rows that were read, with their JSON written as ours is."""
    nested = {field.name for field in fields if pa.types.is_nested(arrow_of(field.type))}
    columns = [
        pa.chunked_array([spell_each(each, normalize_json) for each in column.chunks], pa.string())
        if name in nested
        else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.table(columns, names=rows.column_names)
