"""A user's own step from parsed columns to more columns: a Python function on Arrow tables, found by name."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.definition.pipeline import DIGITS, Pipeline
from seamline.model.types.schema import Schema, has_decimals


@dataclass(frozen=True)
class Transform:
    """A function by its name, the columns that it adds, and the names of the parsed ones that it is given.

    ``exact``: a double is no DECIMAL of these columns where it would be rounded.
    """

    name: str
    schema: Schema
    given: tuple[str, ...]
    exact: bool = False


def makes_exactly(pipeline: Pipeline) -> bool:
    """Return whether a transform makes DECIMALs, and no double that it gives is rounded to one."""
    return pipeline.source.decimals == DIGITS and has_decimals(pipeline.transform_schema)
