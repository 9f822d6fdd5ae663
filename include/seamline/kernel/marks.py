"""What a record cannot know of itself: whether its event id was there before, and its place among its key's.

A table of marks has the coordinates of records, ``_repeated``, and for each view with count windows the
number of the window (``CompiledView.numbered``). A record without marks is the first of its id and in no window.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from seamline.kernel.validation import REPEATED
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.compiled_pipeline import CompiledPipeline

PLACE = pa.schema([("_topic_id", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())])


def marks_schema(pipeline: CompiledPipeline) -> pa.Schema:
    """Return the columns of a table of marks."""
    repeated = [pa.field(REPEATED, pa.bool_())] if pipeline.record.dedup else []
    numbers = [pa.field(view.numbered, pa.int64()) for view in pipeline.views if view.counts]
    return pa.schema([*PLACE, *repeated, *numbers])


def join_marks(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, pipeline: CompiledPipeline, marks: pa.Table | None
) -> pa.Table:
    """Put marks beside rows that have their coordinates, in the order of the rows."""
    if not pipeline.surveyed:
        return rows
    schema = marks_schema(pipeline)
    places = rows.select(PLACE.names).append_column("_row", pa.arange(0, rows.num_rows))
    con.register("places", places)
    con.register("marks", marks if marks is not None else schema.empty_table())
    columns = [
        f"coalesce({REPEATED}, false) AS {REPEATED}" if name == REPEATED else quote_identifier(name)
        for name in schema.names
        if name not in PLACE.names
    ]
    try:
        found = con.sql(
            f"SELECT {', '.join(columns)} FROM places LEFT JOIN marks USING ({', '.join(PLACE.names)}) ORDER BY _row"
        ).to_arrow_table()
    finally:
        con.unregister("places")
        con.unregister("marks")
    for name in found.column_names:
        rows = rows.append_column(name, found[name])
    return rows
