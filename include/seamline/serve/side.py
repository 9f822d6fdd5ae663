"""`seamline.side`: what a pipeline routes away from its views."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seamline.lake.read.named_sides import side_rows
from seamline.lake.storage import layout as places
from seamline.lake.store.locations import Location
from seamline.model.compile.catalog import load_pipeline
from seamline.model.errors import NotFound


def side(name: str, *, warehouse: str | Location | None = None, definitions: Path | None = None) -> pa.Table:
    """Read the records of a side by ``PIPELINE.SIDE``: coordinates, event time and columns, each record once.

    Raises NotFound if there is no such pipeline, side or table.
    """
    pipeline_name, dot, side_name = name.partition(".")
    if not dot:
        raise NotFound(f"{name!r} does not name a side.", hint="write PIPELINE.SIDE.")
    pipeline = load_pipeline(definitions or places.definitions_folder(), pipeline_name)
    return side_rows(pipeline, places.locate_tables(pipeline.name, warehouse), side_name)
