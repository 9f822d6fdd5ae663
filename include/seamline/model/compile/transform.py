"""A user's own step from parsed columns to more columns: a Python function on Arrow tables, found by name."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.definition.pipeline import DIGITS, Pipeline
from seamline.model.types.schema import Schema, has_decimals


@dataclass(frozen=True)
class Transform:
    """A user's function of Arrow tables."""

    name: str
    """``module:function``."""
    schema: Schema
    """The columns that it adds."""
    given: tuple[str, ...]
    """The names of the parsed columns that it is given."""
    exact: bool = False
    """Whether a double that would be rounded is refused as a DECIMAL."""


def makes_exactly(pipeline: Pipeline) -> bool:
    """Return whether a transform makes DECIMALs, and no double that it returns is rounded to one."""
    return pipeline.only_source.decimals == DIGITS and has_decimals(pipeline.transform_schema)
