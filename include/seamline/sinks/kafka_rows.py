"""Rows and places as records of a topic: the key says which row it is, the value what it says now."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from seamline.serve.json_lines import json_lines
from seamline.serve.query import format_scalar
from seamline.sinks.target import ChangeBatch

Record = tuple[bytes, bytes | None]


def encode_changes(batch: ChangeBatch, *, changes: bool) -> Iterator[Record]:
    """Encode changes as records; with ``changes`` a value has what the row was before, and a deletion too.

    A deletion is a tombstone, before which with ``changes`` a record says what the row was.
    """
    places = batch.deletions.schema.names
    keys = encode_rows(batch.upserts.select(places))
    values = encode_rows(batch.upserts)
    gone = encode_rows(batch.deletions)
    if not changes:
        yield from ((key.encode(), value.encode()) for key, value in zip(keys, values, strict=True))
        yield from ((key.encode(), None) for key in gone)
        return
    assert batch.olds is not None
    olds = dict(zip(encode_rows(batch.olds.select(places)), encode_rows(batch.olds), strict=True))
    for key, value in zip(keys, values, strict=True):
        yield key.encode(), f'{{"before": {olds.get(key, "null")}, "after": {value}}}'.encode()
    for key in gone:
        yield key.encode(), f'{{"before": {olds[key]}, "after": null}}'.encode()
        yield key.encode(), None


def encode_rows(rows: pa.Table) -> list[str]:
    """Encode rows as JSON objects, each in one line; equal rows are equal texts."""
    return "".join(json_lines(rows, format_value)).split("\n")[:-1]


def format_value(value: Any) -> Any:
    """Format a value that JSON cannot express; bytes, as sketches are, in base64."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else format_scalar(value)
