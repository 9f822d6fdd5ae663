"""Values of rows as JSON, as the HTTP API writes them, but for a MAP, which is an object here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.types.exact_json import dump_finite_json
from seamline.serve.json_lines import encode_json_column
from seamline.serve.query import format_scalar


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
