"""The rows of an epoch that others are derived from, as tasks report them: the columns that are read of each side."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.prepared_queries import ask_planned_once
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived


def list_joins(views: Iterable[CompiledView]) -> dict[str, CompiledJoin]:
    """List the joins whose rows views count, each once, by id."""
    return {view.join.id: view.join for view in views if view.join}


def list_processes(views: Iterable[CompiledView]) -> dict[str, CompiledProcess]:
    """List the processes whose rows views count, each once, by id."""
    return {view.process.id: view.process for view in views if view.process}


def list_changelogs(views: Iterable[CompiledView]) -> dict[str, CompiledChangelog]:
    """List the changelogs whose rows views count, each once, by id."""
    return {view.changelog.id: view.changelog for view in views if view.changelog}


def list_derived(views: Iterable[CompiledView]) -> dict[str, Derived]:
    """List all of these, by id."""
    return {view.derived.id: view.derived for view in views if view.derived}


def name_side(derived: Derived, number: int) -> str:
    """Name the rows of a side, by its place among ``sides``, in a kernel's result."""
    return f"{derived.id}/{number}"


def add_joined_rows(
    con: duckdb.DuckDBPyConnection, accepted: pa.Table, pipeline: CompiledPipeline, result: KernelResult
) -> None:
    """Add the rows that others are derived from, for any view."""
    for derived in list_derived(pipeline.views).values():
        for number, side in enumerate(derived.sides):
            query = side_rows_sql(derived, side, "accepted", DUCKDB)
            found = ask_planned_once(con, query, {"accepted": accepted})
            if found.num_rows:
                result.joined.setdefault(name_side(derived, number), []).append(found)
