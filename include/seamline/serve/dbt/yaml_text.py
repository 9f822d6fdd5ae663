"""YAML in blocks: what a person may read, and any reader of YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def format_yaml(value: Mapping[str, Any]) -> str:
    """Write YAML; what is no mapping and no list is written as JSON, which YAML is a superset of."""
    return "".join(f"{line}\n" for line in list_lines(value))


def list_lines(value: Any) -> Iterator[str]:
    """List the lines of a value, without indentation."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from list_entry_lines(f"{format_scalar_json(name)}:", each, "  ")
    else:
        for each in value:
            lines = list_lines(each) if is_block(each) else iter([format_scalar_json(each)])
            yield f"- {next(lines)}"
            yield from (f"  {line}" for line in lines)


def list_entry_lines(name: str, value: Any, indent: str) -> Iterator[str]:
    """List the lines of an entry: in one line unless its value has parts."""
    if is_block(value):
        yield name
        yield from (f"{indent}{line}" for line in list_lines(value))
    else:
        yield f"{name} {format_scalar_json(value)}"


def is_block(value: Any) -> bool:
    """Return whether a value has parts, each on lines of its own."""
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def format_scalar_json(value: Any) -> str:
    """Write a value without parts; a plain word needs no quotes."""
    if isinstance(value, str) and value.isascii() and value.isidentifier() and value.lower() not in WORDS:
        return value
    return UNWRITTEN.sub(lambda each: f"\\u{ord(each[0]):04x}", json.dumps(value, ensure_ascii=False))


WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""What a reader of YAML takes for something else than a text."""
UNWRITTEN = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML takes for the end of a line, or does not take; JSON escapes the rest."""
