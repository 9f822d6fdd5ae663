"""A view's page: the answer of a range, by key, each row with its explanation, and how to ask elsewhere."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa

from seamline.lake.engine.windowing import format_grouping_set as spelled_set
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.model.time.reached_intervals import find_spanning_views, list_shown_intervals
from seamline.model.types.schema import TypeKind
from seamline.serve.answer_request import key_condition_sql, key_literal_sql
from seamline.serve.bi import quote_ansi_name, quote_string
from seamline.web import charts

PAGE = 100
SERIES = 8
DEFAULT_INTERVALS = 7
OFFSET = re.compile(r"\d{1,9}", re.ASCII)
MOST = 50_000
SIDES = ("merged", "batch", "speed")


@dataclass(frozen=True)
class ViewRequest:
    """What a reader asks of a view's page."""

    start: str = ""
    """An instant, inclusive, as text; with ``end`` empty too, the last intervals that have rows."""
    end: str = ""
    """An instant, exclusive, as text; empty for no bound."""
    side: str = "merged"
    """One of SIDES."""
    measure: str = ""
    """Empty for the first measure that is a number."""
    version: str = ""
    """A fingerprint; empty for the version that is served."""
    offset: int = 0
    """Rows before the page."""
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values by key column, as text."""

    @classmethod
    def of(cls, items: Iterable[tuple[str, str]]) -> ViewRequest:
        """Read it from an address; what cannot be meant is left out."""
        given: dict[str, Any] = {}
        keys: dict[str, list[str]] = {}
        for name, value in items:
            if name.startswith("key.") and value:
                keys.setdefault(name.removeprefix("key."), []).append(value[:1000])
            elif name in ("start", "end", "measure", "version"):
                given[name] = value[:200]
            elif name == "side" and value in SIDES:
                given[name] = value
            elif name == "offset" and OFFSET.fullmatch(value):
                given[name] = int(value)
        return cls(**given, keys=keys)

    def address(self, **changed: Any) -> str:
        """Write it as an address."""
        whole = {"start": self.start, "end": self.end, "side": self.side, "measure": self.measure} | changed
        items = [(name, value) for name, value in whole.items() if value not in ("", 0)]
        items += [("version", self.version)] if self.version else []
        return "?" + urlencode(
            [*items, *((f"key.{name}", each) for name, some in self.keys.items() for each in some)]
        )


def build_page_answer(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, asked: ViewRequest, root: str
) -> dict[str, Any]:
    """Answer for the page; the last intervals that have rows where no range is given. BadRange for what is wrong."""
    start, end = asked.start, asked.end
    if not start and not end:
        start, end = last_range(pipeline, layout, view)
    where = key_condition_sql(view, asked.keys)
    found = read_merged_answer(
        pipeline,
        find_view(pipeline, layout, view.name),
        layout,
        ReadRequest.parse(
            where, start=start or None, end=end or None, side=asked.side, version=asked.version
        ),
    )
    names = list_numeric_columns(found.table, [each.name for each in view.measures])
    measure = asked.measure if asked.measure in names else next(iter(names), "")
    if asked.measure and asked.measure not in [each.name for each in view.measures]:
        raise BadRange(
            f"{view.qualified} has no measure {asked.measure!r}.", hint=f"it has: {', '.join(names)}."
        )
    _, standing = find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))
    explained = standing.id == view.id
    if found.table.num_rows > MOST:
        raise BadRange(
            f"{found.table.num_rows:,} rows are more than a page draws.",
            hint="ask for a shorter range, or for a key; `seamline query --format csv --out FILE` writes all.",
        )
    finest = spelled_set(max(view.sets, key=len)) if view.grouped else None
    rows = found.table.to_pylist()
    series = by_key(rows, view)
    largest_first = sorted(series, key=lambda each: -find_largest_value(each[1], measure))
    lines = [
        (name, [with_link(row, view, pipeline.name, root, explained) for row in some])
        for name, some in largest_first[:SERIES]
    ]
    shown = [
        with_link(row, view, pipeline.name, root, explained)
        for row in rows[asked.offset : asked.offset + PAGE]
    ]
    seam = min(
        (id for id, each in found.intervals.items() if each.status is not Status.CERTIFIED), default=None
    )
    columns = found.table.column_names
    left = ViewRequest(start, end, asked.side, measure, asked.version, 0, asked.keys)
    more = asked.offset + PAGE < len(rows)
    return {
        "start": start,
        "end": end,
        "measure": measure,
        "summary": found.summary(),
        "rows": shown,
        "total": len(rows),
        "offset": asked.offset,
        "columns": columns,
        "right": list_numeric_columns(found.table, columns),
        "series": len(series),
        "drawn": len(lines),
        "figure": charts.draw_measure(lines, measure, seam) if measure else None,
        "counted": charts.draw_layer_parts(
            [row for row in rows if not view.grouped or row[GROUPING] == finest]
        ),
        "explained": explained,
        "before": left.address(offset=max(asked.offset - PAGE, 0)) if asked.offset else "",
        "after": left.address(offset=asked.offset + PAGE) if more else "",
        "calls": format_equivalent_calls(pipeline, layout, view, left, where, root),
    }


def last_range(pipeline: CompiledPipeline, layout: Layout, view: CompiledView) -> tuple[str, str]:
    """Return the span of the last intervals in which a view may show rows, as text; empty if there are none."""
    log, spanning = read_condensed_log(layout), find_spanning_views(pipeline.grid, [view])
    mark = max((each.watermark for each in log if each.watermark), default=None)
    with_rows = {id for epoch in log for id in epoch.accepted}
    ids = sorted(list_shown_intervals(pipeline.grid, spanning.get(view.id), with_rows, mark))
    ids = ids[-DEFAULT_INTERVALS:]
    return (ids[0], format_utc_instant(pipeline.grid.named(ids[-1]).end)) if ids else ("", "")


def list_numeric_columns(table: pa.Table, names: Iterable[str]) -> list[str]:
    """List the columns that contain numbers."""
    return [
        name
        for name in names
        for type in [table.schema.field(name).type]
        if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    ]


def with_link(
    row: dict[str, Any], view: CompiledView, pipeline: str, root: str, explained: bool
) -> dict[str, Any]:
    """Add the address of a row's explanation; of another version than the served one there is none."""
    if not explained:
        return row | {"_explain": ""}
    window = "/".join(
        format_utc_instant(row[name]) for name in ("window_start", "window_end") if row[name] is not None
    )
    sets = [each for each in view.sets if view.grouped and spelled_set(each) == row[GROUPING]]
    names = next(iter(sets), view.sets[0])
    keys = [
        ("null", name) if row[name] is None else (f"key.{name}", format_key_value(row[name]))
        for name in names
    ]
    query = urlencode([*keys, ("window", window)])
    return row | {"_explain": f"{root}/pipelines/{pipeline}/explain/{quote(view.name)}?{query}"}


def format_key_value(value: Any) -> str:
    """Format a key's value as the API takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return format_utc_instant(value) if hasattr(value, "tzinfo") else str(value)


def by_key(rows: Iterable[dict[str, Any]], view: CompiledView) -> list[tuple[str, list[dict[str, Any]]]]:
    """Sort rows into series by grouping set and key, each by window, and write a name for each."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    names = [*([GROUPING] if view.grouped else []), *(key.name for key in view.keys)]
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for some in found.values():
        some.sort(key=lambda row: row["window_start"])
    return [(format_series_name(values, view), some) for values, some in found.items()]


def format_series_name(values: Sequence[Any], view: CompiledView) -> str:
    """Format the name of a series; a text that could be taken for something else is in quotes."""
    grouping, keys = (f"{values[0]} ", values[1:]) if view.grouped else ("", values)
    return f"{grouping}{', '.join(map(format_distinct_key, keys))}" or view.name


def format_distinct_key(value: Any) -> str:
    """Format a key's value beside others."""
    if not isinstance(value, str):
        return "NULL" if value is None else format_key_value(value)
    plain = value and value != "NULL" and not value.startswith('"') and ", " not in value
    return value if plain else json.dumps(value, ensure_ascii=False)


def find_largest_value(rows: Sequence[Mapping[str, Any]], measure: str) -> float:
    """Find a series' largest value, about, by which the drawn ones are chosen."""
    return max((float(row[measure]) for row in rows if measure and row[measure] is not None), default=0.0)


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
