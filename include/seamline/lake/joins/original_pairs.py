"""The derived rows behind one number: pairs with the places of both rows, left rows, and matched ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.reprocessed import rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.intervals import Interval
from seamline.plan.batch.reached_intervals import widen_by_reach


def read_derived_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    sought: pa.Table,
    key: Mapping[str, Any],
    window: Interval,
    interval: Interval,
    until: int,
) -> pa.Table:
    """Read the derived rows of a key and window in one interval up to an epoch; ``sought`` has the key's values.

    None is a duplicate: a source that is joined has no event id.
    """
    assert view.join
    wide = widen_by_reach(pipeline.grid, interval, view)
    times = (to_unix_micros(wide.start), to_unix_micros(wide.end))
    rows = derived_rows_sql(view.join, log_rows_sql(pipeline, layout, [times], until), DUCKDB)
    matches = [
        f"rows.{quote_identifier(name)} IS NOT DISTINCT FROM sought.{quote_identifier(name)}" for name in key
    ]
    for span in (window, interval):
        matches += [
            f"epoch_us(rows._event_time) >= {to_unix_micros(span.start)}",
            f"epoch_us(rows._event_time) < {to_unix_micros(span.end)}",
        ]
    chosen = f"({view.where.duckdb})" if view.where else "true"
    with register_tables(blank=rows_schema(pipeline).empty_table(), sought=sought) as con:
        return con.sql(
            f"SELECT rows.*, FALSE AS _spare FROM ({rows}) rows, sought WHERE {chosen} AND {' AND '.join(matches)}"
        ).to_arrow_table()
