"""A user's own step from parsed columns to more columns: a Python function on Arrow tables, found by name."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.schema import Schema


@dataclass(frozen=True)
class Transform:
    """A function by its name, the columns that it adds, and the names of the parsed ones that it is given."""

    name: str
    schema: Schema
    given: tuple[str, ...]
