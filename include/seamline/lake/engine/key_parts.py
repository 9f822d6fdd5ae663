"""Rows shared out by the hash of their key: equal keys are in the same part, whoever shares them out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.measures import quote_identifier
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.window_arithmetic import Gaps


def list_part_keys(view: CompiledView) -> list[str]:
    """List the columns by which a view's states are shared out: sessions are joined across panes, all else in one."""
    return [*(key.name for key in view.keys), *([] if isinstance(view.windows, Gaps) else ["pane"])]


def split_by_key(table: pa.Table, keys: Sequence[str], parts: int) -> list[pa.Table]:
    """Split rows into so many tables by the hash of the columns ``keys``; without any, all are in the first.

    The hash is DuckDB's, which is the same in every process of one release: what is shared out is never stored.
    """
    if parts == 1 or not keys or not table.num_rows:
        return [table, *[table.slice(0, 0)] * (parts - 1)]
    columns = ", ".join(map(quote_identifier, keys))
    found = query_tables(
        f"SELECT (hash({columns}) % {parts})::INT AS part FROM keyed", keyed=table.select(keys)
    )
    part = found["part"].to_numpy()
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(1, parts + 1))
    sorted_rows = table.take(pa.array(order))
    return [sorted_rows.slice(start, end - start) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
