"""A view's page: the answer of a range, by key, each row with its explanation, and how to ask elsewhere."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa

from seamline.lake.engine.windowing import format_grouping_set as spelled_set
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment
from seamline.model.time.reached_intervals import find_spanning_views, list_shown_intervals
from seamline.model.types.schema import TypeKind
from seamline.serve.answer_request import key_condition_sql, key_literal_sql
from seamline.serve.bi import quote_ansi_name, quote_string
from seamline.web import charts
from seamline.web.drawn.picture import draw_picture
from seamline.web.drawn.series import Series, Subject, by_key, find_largest_value
from seamline.web.drawn.view_request import ViewRequest
from seamline.web.drawn.wall_clock import find_zone, zone_of

PAGE = 100
DEFAULT_INTERVALS = 7
LEAST_OF_HEAT = timedelta(days=14)
"""How far back intervals are drawn as a heat map where no range is given."""
MOST = 50_000


def build_page_answer(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, asked: ViewRequest, root: str
) -> dict[str, Any]:
    """Answer for the page; the last intervals that have rows where no range is given. BadRange for what is wrong."""
    start, end = asked.start, asked.end
    if not start and not end:
        start, end = last_range(
            pipeline, layout, view, LEAST_OF_HEAT if asked.draw == "heat" else timedelta(0)
        )
    left = replace(asked, start=start, end=end)
    found = read_rows(pipeline, layout, view, left)
    names = list_numeric_columns(found.table, [each.name for each in view.measures])
    measure = asked.measure if asked.measure in names else next(iter(names), "")
    if asked.measure and asked.measure not in [each.name for each in view.measures]:
        raise BadRange(
            f"{view.qualified} has no measure {asked.measure!r}.", hint=f"it has: {', '.join(names)}."
        )
    left = replace(left, measure=measure)
    _, standing = find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))
    zone = find_zone(asked.zone or zone_of(view))
    subject = Subject(pipeline, view, measure, zone, root, standing.id == view.id, found.intervals)
    finest = spelled_set(max(view.sets, key=len)) if view.grouped else None
    rows = found.table.to_pylist()

    def read_other(span: Interval) -> tuple[Subject, list[Series]]:
        bounds = replace(left, start=format_utc_instant(span.start), end=format_utc_instant(span.end))
        other = read_rows(pipeline, layout, view, bounds)
        return replace(subject, intervals=other.intervals), list_series(other, view, measure)

    columns = found.table.column_names
    more = asked.offset + PAGE < len(rows)
    picture = draw_picture(subject, list_series(found, view, measure), left, read_other) if measure else {}
    return {
        "asked": left,
        "zone": zone.key,
        "summary": found.summary(),
        "rows": [row | {"_explain": subject.link(row)} for row in rows[asked.offset : asked.offset + PAGE]],
        "total": len(rows),
        "offset": asked.offset,
        "columns": columns,
        "right": list_numeric_columns(found.table, columns),
        "counted": charts.draw_layer_parts(
            [row for row in rows if not view.grouped or row[GROUPING] == finest]
        ),
        "explained": subject.explained,
        "first": left.address(page=asked.page),
        "before": left.address(page=asked.page, offset=max(asked.offset - PAGE, 0)) if asked.offset else "",
        "after": left.address(page=asked.page, offset=asked.offset + PAGE) if more else "",
        "calls": format_equivalent_calls(
            pipeline, layout, view, left, key_condition_sql(view, asked.keys), root
        ),
        "picture": picture,
    }


def read_rows(pipeline: CompiledPipeline, layout: Layout, view: CompiledView, asked: ViewRequest) -> Answer:
    """Read what is asked for; BadRange for more rows than a page draws."""
    found = read_merged_answer(
        pipeline,
        find_view(pipeline, layout, view.name),
        layout,
        ReadRequest.parse(
            key_condition_sql(view, asked.keys),
            start=asked.start or None,
            end=asked.end or None,
            side=asked.side,
            version=asked.version,
        ),
    )
    if found.table.num_rows > MOST:
        raise BadRange(
            f"{found.table.num_rows:,} rows are more than a page draws.",
            hint="ask for a shorter range, or for a key; `seamline query --format csv --out FILE` writes all.",
        )
    return found


def list_series(found: Answer, view: CompiledView, measure: str) -> list[Series]:
    """List the keys of an answer, those with the largest values first."""
    return sorted(
        by_key(found.table.to_pylist(), view), key=lambda each: -find_largest_value(each[1], measure)
    )


def last_range(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, least: timedelta
) -> tuple[str, str]:
    """Return the span of the last intervals in which a view may show rows, as text; empty if there are none.

    These are so many, and more if they begin within ``least`` of the last one.
    """
    log, spanning = read_condensed_log(layout), find_spanning_views(pipeline.grid, [view])
    mark = max((each.watermark for each in log if each.watermark), default=None)
    with_rows = {id for epoch in log for id in epoch.accepted}
    ids = sorted(list_shown_intervals(pipeline.grid, spanning.get(view.id), with_rows, mark))
    if not ids:
        return "", ""
    recent = bisect_right(ids, parse_moment(ids[-1]) - least, key=parse_moment)
    first = ids[min(max(len(ids) - DEFAULT_INTERVALS, 0), recent)]
    return first, format_utc_instant(pipeline.grid.named(ids[-1]).end)


def list_numeric_columns(table: pa.Table, names: Iterable[str]) -> list[str]:
    """List the columns that contain numbers."""
    return [
        name
        for name in names
        for type in [table.schema.field(name).type]
        if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    ]


def format_equivalent_calls(
    pipeline: CompiledPipeline,
    layout: Layout,
    view: CompiledView,
    asked: ViewRequest,
    where: str | None,
    root: str,
) -> dict[str, Any]:
    """Format the same question for the command line, Python, SQL and HTTP."""
    query = [(name, value) for name, value in (("start", asked.start), ("end", asked.end)) if value]
    query += [("side", asked.side)] + ([("version", asked.version)] if asked.version else [])
    query += [(f"key.{name}", each) for name, some in asked.keys.items() for each in some]
    path = f"{root}/api/v1/views/{pipeline.name}/{quote(view.name)}"
    http = f"{path}?{urlencode(query)}"
    words = ["seamline", "query", view.qualified]
    words += ["--from", asked.start] if asked.start else []
    words += ["--to", asked.end] if asked.end else []
    words += ["--where", where] if where else []
    words += ["--side", asked.side] if asked.side != "merged" else []
    words += ["--version", asked.version] if asked.version else []
    given = {
        "where": where,
        "start": asked.start,
        "end": asked.end,
        "side": asked.side,
        "version": asked.version,
    }
    python = ", ".join(
        [repr(view.qualified), *(f"{name}={value!r}" for name, value in given.items() if value)]
    )
    texts = {
        "Command line": shlex.join(words),
        "Python": f"seamline.read({python})",
        "HTTP": f'curl -H "Authorization: Bearer $TOKEN" "$AIRFLOW{http}"',
    }
    if asked.side == "merged" and not asked.version:
        texts["SQL over the serving table (DuckDB; as new as serve_every)"] = serving_query_sql(
            layout, view, asked
        )
    return {"download": f"{path}/rows?{urlencode(query)}", "texts": texts}


def serving_query_sql(layout: Layout, view: CompiledView, asked: ViewRequest) -> str:
    """Write the question in standard SQL; every value in it is quoted by its type."""
    known = {key.name: key for key in view.keys}
    parts = (
        [f"window_start >= {quote_string(format_utc_instant(parse_moment(asked.start)))}"]
        if asked.start
        else []
    )
    parts += (
        [f"window_start < {quote_string(format_utc_instant(parse_moment(asked.end)))}"] if asked.end else []
    )
    for name, values in asked.keys.items():
        spelled = [
            quote_string(value)
            if known[name].type.kind is TypeKind.STRING
            else key_literal_sql(known[name], value)
            for value in values
        ]
        parts.append(f"{quote_ansi_name(name)} IN ({', '.join(spelled)})")
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    return f"SELECT * FROM delta_scan({quote_string(layout.serving(view))}){where}"
