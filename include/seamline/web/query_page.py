"""The page of questions in SQL: what is asked is in its address, so it can be passed on."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version as release
from typing import Annotated, Any
from urllib.parse import urlencode

import pyarrow as pa
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from seamline.lake.storage.layout import definitions_folder
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import format_utc_instant
from seamline.serve.sql.sql_answer import SqlAnswer, writing_values
from seamline.web.access import list_readable_pipelines
from seamline.web.charts import Figure, make_figure
from seamline.web.limits import enforce_rate_limit, run_with_time_limit
from seamline.web.render import render_page_response
from seamline.web.sql import answer_statement

LIMIT = 1000
"""Rows that the page shows."""
SERIES = 12
"""Lines that are drawn."""
WINDOW = ("window_start", "window_end")
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)


@router.get("/query")
def query(request: Request, user: GetUserDep, q: Annotated[str, Query(max_length=8000)] = "") -> Response:
    """Ask one SELECT over merged views: its rows, a chart of them, and how far each view is right."""
    readable = list_readable_pipelines(user)
    context: dict[str, Any] = {
        "error": "",
        "found": None,
        "rows": [],
        "columns": [],
        "right": [],
        "figure": None,
    }
    if q.strip():
        try:
            context |= show_answer(run_with_time_limit(lambda: answer_statement(q, readable, limit=LIMIT)))
        except SeamlineError as error:
            context["error"] = f"{error.message} {error.hint}"
    return render_page_response(
        request,
        "query.html",
        here="query",
        q=q,
        plotly=release("plotly"),
        limit=LIMIT,
        words=list_words(readable),
        download=f"{request.scope['root_path']}/api/v1/sql?{urlencode({'q': q, 'limit': 10_000})}",
        cli=f"seamline sql {shlex.quote(q)}",
        **context,
    )


def show_answer(found: SqlAnswer) -> dict[str, Any]:
    """Make of an answer what the page shows; BadRange for values that cannot be written."""
    with writing_values():
        rows = found.rows.to_pylist()
    right = list_numbers(found.rows)
    return {
        "found": found,
        "rows": rows,
        "columns": found.rows.column_names,
        "right": right,
        "figure": draw_rows(rows, found.rows, right),
    }


def list_numbers(rows: pa.Table) -> list[str]:
    """List the columns that are numbers."""
    return [
        field.name
        for field in rows.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_decimal(field.type)
    ]


def draw_rows(rows: Sequence[Mapping[str, Any]], table: pa.Table, numbers: Sequence[str]) -> Figure | None:
    """Draw the numbers over the first column of times, a line for each text beside them; None without either.

    A text and several numbers would be too many lines: then the first number is drawn.
    """
    times = [
        field.name
        for field in table.schema
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)
    ]
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    if not times or not numbers or not rows:
        return None
    by, drawn = texts[:1], numbers[:1] if texts else numbers[:SERIES]
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted((row for row in rows if row[times[0]] is not None), key=lambda row: row[times[0]]):
        lines.setdefault(("NULL" if row[by[0]] is None else row[by[0]]) if by else "", []).append(row)
    longest = sorted(lines.items(), key=lambda each: -len(each[1]))[:SERIES]
    return make_figure(
        [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name or number,
                "x": [write_time(row[times[0]]) for row in some],
                "y": [row[number] for row in some],
            }
            for name, some in longest
            for number in drawn
        ],
        drawn[0] if len(drawn) == 1 else "",
        xaxis={"title": {"text": times[0]}},
    )


def write_time(value: Any) -> str:
    """Write a time as a chart takes it."""
    return format_utc_instant(value) if getattr(value, "tzinfo", None) else str(value)


def list_words(names: Iterable[str]) -> dict[str, list[str]]:
    """List the columns of each view of some pipelines by ``PIPELINE.VIEW``: what a statement may name."""
    known = load_cached_catalog(definitions_folder()).pipelines
    return {
        f"{name}.{view.name}": [
            *(each.name for each in view.keys),
            *WINDOW,
            *(each.name for each in view.measures),
        ]
        for name in names
        if name in known
        for view in known[name].views
    }
