"""The definitions of include/examples, as `seamline check` finds them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from seamline.model.compile.catalog import Catalog, load_catalog
from seamline.model.definition.pipeline import Pipeline

FOLDER = Path(__file__).parents[2] / "include" / "examples"


@cache
def catalog() -> Catalog:
    """Load them once."""
    return load_catalog(FOLDER)


def declared(name: str) -> Pipeline:
    """Find a definition."""
    return catalog().pipeline(name).definition
