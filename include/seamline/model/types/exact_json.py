"""JSON whose numbers keep all of their digits: a Decimal is written as the number that it is."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable
from decimal import Decimal
from typing import Any

MARK = secrets.token_hex(16)
"""Stands before a number while it is a text: json writes a number of no type but int and float."""
MARKED = re.compile(f'"{MARK}([^"]*)"')


def dump_exact_json(value: Any, *, default: Callable[[Any], Any] = str, **options: Any) -> str:
    """Write JSON as ``json.dumps`` does, and each Decimal as a plain number with the digits of its scale."""
    exact = False

    def spelled(one: Any) -> Any:
        nonlocal exact
        if not isinstance(one, Decimal):
            return default(one)
        exact = True
        return f"{MARK}{one:f}"

    text = json.dumps(value, default=spelled, **options)
    return MARKED.sub(r"\1", text) if exact else text


def dump_finite_json(value: Any, *, default: Callable[[Any], Any] = str, **options: Any) -> str:
    """Write JSON as ``dump_exact_json``; a double that is no number is null, for which JSON has no word."""
    try:
        return dump_exact_json(value, default=default, allow_nan=False, **options)
    except ValueError:
        return dump_exact_json(replace_nonfinite(value), default=default, **options)


def replace_nonfinite(found: Any) -> Any:
    """Replace doubles that are not numbers by None."""
    match found:
        case float():
            return found if math.isfinite(found) else None
        case dict():
            return {name: replace_nonfinite(each) for name, each in found.items()}
        case list() | tuple():
            return [replace_nonfinite(each) for each in found]
    return found


def load_exact_json(text: str) -> Any:
    """Read JSON as ``json.loads`` does, and each number with a point or an exponent as a Decimal."""
    return json.loads(text, parse_float=Decimal)
