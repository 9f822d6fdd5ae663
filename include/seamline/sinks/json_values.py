"""Values of rows as JSON, as the HTTP API writes them, but for a MAP, which is an object here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.types.exact_json import dump_finite_json
from seamline.serve.json_lines import encode_json_column
from seamline.serve.query import format_scalar

START = r'"window_start": "(?P<start>[^"]*)"'
"""Finds the start of the window in an object; in a text of it the quotes have backslashes before them."""


def encode_column(column: pa.Array) -> pa.Array:
    """Encode the values of a column; NULL is null."""
    if pa.types.is_nested(column.type):
        return pc.fill_null(spell_each(column, spell_nested), "null")
    return encode_json_column(column, format_scalar)


def spell_nested(value: Any) -> str:
    """Encode a value with parts."""
    return dump_finite_json(value, default=format_scalar)


def spell_each(column: pa.Array, spell: Callable[[Any], str]) -> pa.Array:
    """Spell values one by one in Python; NULL stays NULL."""
    values = column.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if value is None else spell(value) for value in values], pa.string())


def read_starts(texts: pa.Array, pattern: str = START) -> pa.Array:
    """Read when windows start; NULL where a text does not say so."""
    found = pc.struct_field(pc.extract_regex(texts, pattern), "start")
    try:
        return found.cast(INSTANT)
    except pa.ArrowInvalid:
        return pa.array([cast_start(each) for each in found.to_pylist()], INSTANT)


def cast_start(text: str | None) -> Any:
    """Read one instant; None for what is none."""
    try:
        return pa.scalar(text, pa.string()).cast(INSTANT).as_py()
    except pa.ArrowInvalid:
        return None
