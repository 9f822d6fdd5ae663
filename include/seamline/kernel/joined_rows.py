"""The rows of an epoch that are joined, as tasks report them: of each side the columns that its join reads."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.prepared_queries import ask_planned_once
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import side_rows_sql

LEFT, RIGHT = "left", "right"


def list_joins(views: Iterable[CompiledView]) -> dict[str, CompiledJoin]:
    """List the joins whose rows views count, each once, by id."""
    return {view.join.id: view.join for view in views if view.join}


def name_side(join: CompiledJoin, side: str) -> str:
    """Name the rows of a side in a kernel's result."""
    return f"{join.id}/{side}"


def add_joined_rows(
    con: duckdb.DuckDBPyConnection, accepted: pa.Table, pipeline: CompiledPipeline, result: KernelResult
) -> None:
    """Add the rows that the joins of any view read."""
    joins = list_joins(pipeline.views)
    if not joins:
        return
    for join in joins.values():
        for name, side in zip((LEFT, RIGHT), join.sides, strict=True):
            query = side_rows_sql(join, side, "accepted", DUCKDB)
            found = ask_planned_once(con, query, {"accepted": accepted})
            if found.num_rows:
                result.joined.setdefault(name_side(join, name), []).append(found)
