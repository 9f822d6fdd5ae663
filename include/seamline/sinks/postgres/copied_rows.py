"""Rows as PostgreSQL's COPY reads them, made column by column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from seamline.sinks.json_values import spell_each, spell_nested

CHUNK = 10_000
"""Rows whose text is in memory at a time."""
SYMBOL, NUL = "\N{SYMBOL FOR NULL}", "\0"
"""No text of PostgreSQL has U+0000: it is written as the symbol and a 0, and the symbol itself as two of them."""
SPELLED = re.compile(f"[{NUL}{SYMBOL}]")
AS_WRITTEN = csv.WriteOptions(include_header=False, quoting_style="needed")


def copy_texts(rows: pa.Table) -> Iterator[bytes]:
    """Write rows as CSV, some thousands at a time: NULL is nothing, an empty text is quoted."""
    for batch in rows.to_batches(max_chunksize=CHUNK):
        columns = [spell_column(column) for column in batch.columns]
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.record_batch(columns, names=batch.schema.names), sink, AS_WRITTEN)
        yield sink.getvalue().to_pybytes()


def spell_column(column: pa.Array) -> pa.Array:
    """Return values in a form that the writer of CSV and PostgreSQL understand alike."""
    kind = column.type
    if pa.types.is_string(kind):
        return escape_texts(column)
    if pa.types.is_timestamp(kind):
        # In UTC, as the transaction's zone is: with a zone the writer takes fifty times as long.
        return column.cast(pa.timestamp("us"))
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    if pa.types.is_binary(kind):
        return spell_each(column, lambda value: f"\\x{value.hex()}")
    if pa.types.is_nested(kind):
        return spell_each(column, spell_jsonb)
    return column


def escape_texts(column: pa.Array) -> pa.Array:
    """Return texts without U+0000, so that different ones stay different."""
    found = pc.or_(pc.match_substring(column, NUL), pc.match_substring(column, SYMBOL))
    return spell_each(column, escape_text) if pc.any(found).as_py() else column


def escape_text(text: str) -> str:
    """Return a text without U+0000."""
    return SPELLED.sub(lambda one: SYMBOL + (SYMBOL if one[0] == SYMBOL else "0"), text)


def spell_jsonb(value: Any) -> str:
    """Encode a value with parts; its texts are without U+0000, which jsonb refuses too."""
    text = spell_nested(value)
    # As JSON writes the two in ASCII; a backslash before them is no reason not to look closer.
    if "\\u0000" in text or "\\u2400" in text:
        return spell_nested(escape_parts(value))
    return text


def escape_parts(value: Any) -> Any:
    """Return a value whose texts, names of parts among them, are without U+0000."""
    match value:
        case str():
            return escape_text(value)
        case dict():
            return {escape_text(name): escape_parts(each) for name, each in value.items()}
        case list() | tuple():
            return [escape_parts(each) for each in value]
    return value
