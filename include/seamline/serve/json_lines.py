"""Rows as JSON, an object a line: spelled column by column, and each value that occurs often once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.types.exact_json import dump_finite_json

BATCH = 50_000
"""Rows that are spelled at a time."""


def json_lines(rows: pa.Table, plain: Callable[[Any], Any]) -> Iterator[str]:
    """Write rows as ``json.dumps`` writes each, some thousands of lines at a time.

    ``plain`` returns what is written of a value that JSON cannot express; a double that is no number is null.
    """
    for batch in rows.to_batches(max_chunksize=BATCH):
        parts: list[Any] = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            parts += [
                f"{', ' if parts else '{'}{dump_finite_json(name)}: ",
                encode_json_column(column, plain),
            ]
        whole = pc.binary_join_element_wise(*parts, "}\n", "") if parts else pa.array([], pa.string())
        yield "".join(whole.to_pylist())


def encode_json_column(column: pa.Array, plain: Callable[[Any], Any]) -> pa.Array:
    """Encode the values of a column as JSON."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column.cast(pa.string()), "null")
    if pa.types.is_timestamp(kind) and kind.tz == "UTC":
        return pc.fill_null(encode_timestamps(column), "null")
    if pa.types.is_string(kind) or pa.types.is_decimal(kind):
        known = column.dictionary_encode()
        return pc.fill_null(pc.take(encode_json_values(known.dictionary, plain), known.indices), "null")
    return encode_json_values(column, plain)


def encode_timestamps(column: pa.Array) -> pa.Array:
    """Encode instants as ``stamp`` does: with a fraction only where there is one."""
    precise = column.cast(pa.timestamp("us"))
    seconds = precise.cast(pa.timestamp("s"), safe=False)
    whole = pc.equal(seconds.cast(pa.timestamp("us")), precise)
    text = pc.if_else(whole, seconds.cast(pa.string()), precise.cast(pa.string()))
    return pc.binary_join_element_wise('"', pc.replace_substring(text, " ", "T"), 'Z"', "")


def encode_json_values(column: pa.Array, plain: Callable[[Any], Any]) -> pa.Array:
    """Encode values by Python; all in one call where none has parts, since no JSON text has a line break in it."""
    if pa.types.is_nested(column.type):
        return pa.array([dump_finite_json(value, default=plain) for value in column.to_pylist()], pa.string())
    found = dump_finite_json(column.to_pylist(), default=plain, separators=("\n", ": "))[1:-1]
    return pa.array(found.split("\n") if len(column) else [], pa.string())
