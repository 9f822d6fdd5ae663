"""A table's rows after all changes, for the dull engine: the changes one after the other, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.testing.folding import query_rows
from seamline.testing.input import input_of
from seamline.testing.joined import Record, list_side_rows
from seamline.testing.oracle import Row

LOGGED = ("_epoch", "_partition", "_offset", "_topic", "_topic_id")


def list_change_rows(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    view: CompiledView,
    accepted: Iterable[pa.Table],
) -> list[Row]:
    """List a view's input: what each change of accepted rows takes away, and what it adds."""
    changelog, tables = view.changelog, list(accepted)
    if changelog is None or not tables:
        return []
    parts: dict[int, list[Record]] = {1: [], -1: []}
    for sign, row in list_signed_rows(con, changelog, tables):
        parts[sign].append(row)
    return [
        replace(row, sign=sign)
        for sign, rows in parts.items()
        for row in input_of(con, pipeline, view, pa.Table.from_pylist(rows, tables[0].schema))
    ]


def list_signed_rows(
    con: duckdb.DuckDBPyConnection, changelog: CompiledChangelog, tables: list[pa.Table]
) -> Iterable[tuple[int, Record]]:
    """List what changes add, and what they take away, at the place of the change."""
    side = replace(changelog.sides[0], made={})
    rows = sorted(
        list_deletions(con, changelog, list_side_rows(con, side, tables), tables[0].schema),
        key=lambda each: tuple(each[1][name] for name in LOGGED),
    )
    known: dict[tuple[Any, ...], tuple[Any, Record | None]] = {}
    for deletes, row in rows:
        key = tuple(row[each.name] for each in changelog.changes.key)
        order = row[changelog.changes.order.name] if changelog.changes.order else None
        greatest, before = known.get(key, (None, None))
        if order is not None and greatest is not None and order < greatest:
            continue
        if before is not None:
            yield -1, {**before, **{name: row[name] for name in (*LOGGED, "_event_time")}}
        if not deletes:
            yield 1, row
        known[key] = (greatest if order is None else order, None if deletes else row)


def list_deletions(
    con: duckdb.DuckDBPyConnection, changelog: CompiledChangelog, rows: list[Record], schema: pa.Schema
) -> list[tuple[bool, Record]]:
    """List rows, each with whether it deletes its row of the table."""
    if not rows:
        return []
    table = pa.Table.from_pylist(rows, schema)
    found = query_rows(con, f"SELECT {changelog.deletes.duckdb} FROM rows", table)
    return [(deletes, row) for (deletes,), row in zip(found, rows, strict=True)]
