"""What is in error with an item of a record: asked only of records of which views make rows within bounds.

A condition on an item that reads what is beside it makes that again for each of them, as the view itself does.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.validation import TAKEN, items_sql
from seamline.lake.engine.prepared_queries import ask_planned_once
from seamline.model.compile.compiled_pipeline import CompiledPipeline

ROWS = "within_bounds"


def validate_items(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, pipeline: CompiledPipeline
) -> tuple[pa.Table, pa.Table]:
    """Part validated rows into those whose items are sound and those with an error in one, with reason and detail."""
    asked = items_sql(pipeline, ROWS)
    verdict = None
    if asked and rows.num_rows:
        verdict = ask_planned_once(con, asked, {ROWS: rows})["_judged"]
    if TAKEN in rows.column_names:
        rows = rows.drop_columns([TAKEN])
    if verdict is None or verdict.null_count == len(verdict):
        return rows, rows.slice(0, 0)
    good = pc.is_null(verdict)
    bad = pc.invert(good)
    why = verdict.filter(bad)
    refused = rows.filter(bad).append_column("_reason", pc.list_element(why, 0))
    return rows.filter(good), refused.append_column("_detail", pc.list_element(why, 1))
