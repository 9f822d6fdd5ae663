"""The changes behind one number: what each has taken away, and what it has added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from seamline.lake.engine.changed_index import image_schema
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.lake.joins.joined_rows import logged_rows
from seamline.lake.storage.layout import Layout
from seamline.model.compile.changes.changes_sql import (
    changes_sql,
    contributions_sql,
    list_image_fields,
    same_key_sql,
)
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import side_rows_sql


def read_change_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    sought: pa.Table,
    key: Mapping[str, Any],
    until: int,
) -> pa.Table:
    """Read what all changes up to an epoch have added to a key of a view, and taken from it; ``sought`` has the key.

    ``_interval`` says where each is booked. Rows have the columns of the table's key, too.
    """
    assert view.changelog
    changelog = replace(view.changelog, columns=list_image_fields(view.changelog))
    chosen = view.where.duckdb if view.where else "true"
    same = [f"rows.{name} IS NOT DISTINCT FROM sought.{name}" for name in map(quote_identifier, key)]
    blank = image_schema(changelog).empty_table()

    def of_key(rows: str) -> str:
        """Write the reading of those rows of a query that are of the view's key."""
        return (
            f"FROM (SELECT * FROM ({rows}) WHERE {chosen}) rows, sought WHERE {' AND '.join(same) or 'true'}"
        )

    with (
        register_tables(sought=sought, no_images=blank) as con,
        logged_rows(con, changelog, pipeline, layout, [(None, None)], until) as logged,
    ):
        rows = side_rows_sql(changelog, changelog.sides[0], logged, DUCKDB)
        # A row of the table that never was of this key has changed nothing here.
        known = same_key_sql(changelog, "r", "t", DUCKDB)
        mine = f"SELECT r.* FROM ({rows}) r SEMI JOIN (SELECT rows.* {of_key(rows)}) t ON {known}"
        changes = changes_sql(changelog, "no_images", f"({mine})", DUCKDB)
        signed = contributions_sql(changelog, f"({changes})", DUCKDB)
        interval = floor_sql("_event_time", pipeline.grid.length)
        return con.sql(f"SELECT rows.*, {interval} AS _interval {of_key(signed)}").to_arrow_table()
