"""Tables as TOML, such that a change of one figure is a change of one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def write_tables(name: str, tables: Iterable[Mapping[str, Any]]) -> str:
    """Write an array of tables."""
    return "\n".join(f"[[{name}]]\n{write_lines(each)}" for each in tables)


def write_named(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Write tables by name."""
    return "\n".join(f'["{name}"]\n{write_lines(each)}' for name, each in tables.items())


def write_lines(table: Mapping[str, Any]) -> str:
    """Write the lines of a table; what is in it by name stands in one line."""
    return "".join(f"{name} = {write_value(value)}\n" for name, value in table.items())


def write_value(value: Any) -> str:
    """Write a value; figures have five digits."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case int():
            return str(value)
        case float():
            return f"{value:.5g}" if value % 1 or abs(value) > 1e15 else f"{value:.0f}"
        case Mapping():
            return "{ " + ", ".join(f"{name} = {write_value(each)}" for name, each in value.items()) + " }"
    raise TypeError(f"{value!r} is not of a kind that is kept")
