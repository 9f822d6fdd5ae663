"""The sources of dbt: a source for each pipeline, a table for each view, with what is promised of its rows as tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import ceil
from typing import Any

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.read.serving_table import serving_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.protocol.seam import Phase
from seamline.model.time.intervals import parse_duration
from seamline.model.time.window_arithmetic import Whole
from seamline.plan.wording.view_text import describe_measure
from seamline.serve.bi import quote_ansi_name

PLUGIN = "delta"
PROFILE: Mapping[str, Any] = {
    "seamline": {
        "target": "dev",
        "outputs": {
            "dev": {
                "type": "duckdb",
                "path": "seamline.duckdb",
                # The plugin makes a source anew for each node that reads it, and two threads would conflict.
                "threads": 1,
                "settings": {"TimeZone": "UTC"},
                "plugins": [{"module": PLUGIN}],
            }
        },
    }
}
"""A profile by which dbt-duckdb reads the sources."""
UNITS = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))
COLUMNS = {
    GROUPING: "The grouping set of the row.",
    "window_start": "When the window starts, UTC.",
    "window_end": "When the window ends, UTC, exclusive; NULL for one without an end.",
    "batch_part": "Records counted by a build.",
    "speed_part": "Records counted by the stream since.",
    "epoch": "The last epoch up to which the row is right.",
    "certified": "Whether the number was certified and nothing has come since.",
    "complete": "Whether the watermark is past the window's end.",
    "phase": "early before the window closes, complete behind that, late if it was corrected since.",
    "manifest_version": "The version of the manifest that the row shows.",
    "interval": "The interval in which the window starts; the table's partition.",
}
"""What the columns say that every serving table has."""
PLACED = (
    "window_start",
    "batch_part",
    "speed_part",
    "epoch",
    "certified",
    "complete",
    "manifest_version",
    "interval",
)
"""Those that are never NULL."""
JINJA = re.compile(r"\{[{%#]")


def make_sources(opened: Iterable[tuple[CompiledPipeline, Layout]], severity: str) -> dict[str, Any]:
    """Make the document; ``severity`` is that of the test of completeness: warn or error."""
    return {"version": 2, "sources": [make_source(*each, severity) for each in opened]}


def make_source(pipeline: CompiledPipeline, layout: Layout, severity: str) -> dict[str, Any]:
    """Make the source of a pipeline."""
    return {
        "name": pipeline.name,
        "description": escape_jinja(pipeline.definition.description or f"Views of {pipeline.name}."),
        "schema": pipeline.name,
        **({"tags": list(pipeline.definition.tags)} if pipeline.definition.tags else {}),
        "config": {"meta": {"plugin": PLUGIN}},
        "tables": [make_table(pipeline, layout, each.name, severity) for each in pipeline.views],
    }


def make_table(pipeline: CompiledPipeline, layout: Layout, name: str, severity: str) -> dict[str, Any]:
    """Make the table of a view: that of the version which is served."""
    owner, view = find_served_version(pipeline, layout, find_view(pipeline, layout, name))
    ends = not isinstance(view.windows, Whole)
    within = find_time_to_certify(owner, view)
    keys = ", ".join(each.name for each in view.keys) or "no keys"
    return {
        "name": view.name,
        "description": escape_jinja(
            f"{view.qualified} by {keys}, {view.window}: the merged answer, as of the last refresh."
        ),
        "config": {
            "meta": {"delta_table_path": str(layout.serving(view)), "seamline_version": view.fingerprint},
            **(make_freshness(within) if ends else {}),
        },
        "columns": [*list_columns(view, ends=ends)],
        "data_tests": [make_uniqueness(view), *([make_completeness(view, within, severity)] if ends else [])],
    }


def find_time_to_certify(pipeline: CompiledPipeline, view: CompiledView) -> timedelta:
    """Find how old a window's end may be at most, by the clock, before it is certified.

    An interval's length, for a window that ends where it begins, and ``fresh_within``, or as long again.
    """
    within = pipeline.definition.batch.fresh_within
    length = pipeline.grid.length
    return length + view.after + (parse_duration(within) if within else length)


def make_freshness(within: timedelta) -> dict[str, Any]:
    """Warn where the newest certified window is older than that, and fail where it is twice as old."""
    return {
        "loaded_at_field": "window_end",
        "freshness": {
            "warn_after": count_period(within),
            "error_after": count_period(2 * within),
            "filter": "certified",
        },
    }


def count_period(span: timedelta) -> dict[str, Any]:
    """Count a span in the largest unit that dbt has for it."""
    for unit, period in UNITS:
        if span % unit == timedelta(0):
            return {"count": span // unit, "period": period}
    return {"count": ceil(span / timedelta(minutes=1)), "period": "minute"}


def list_columns(view: CompiledView, *, ends: bool) -> Iterator[dict[str, Any]]:
    """List the columns, with the types that DuckDB gives them."""
    told = {
        **COLUMNS,
        **{each.name: f"A key, {each.type.spark}." for each in view.keys},
        **{each.name: f"{describe_measure(each.measure)}." for each in view.measures},
        **{name: f"{each.name} as text, where no DECIMAL holds it." for name, each in view.beyond.items()},
    }
    never = {
        *PLACED,
        *(["window_end"] if ends else []),
        *(each.name for each in view.keys if not each.nullable),
    }
    if view.grouped:
        never -= {each.name for each in view.keys}
    schema = serving_schema(view)
    with register_tables(_serving=schema.empty_table()) as con:
        described = con.execute("DESCRIBE SELECT * FROM _serving").fetchall()
    for name, type, *_ in described:
        tests: list[Any] = ["not_null"] if name in never else []
        if name == "phase":
            tests = [
                "not_null",
                {"accepted_values": {"arguments": {"values": [each.value for each in Phase]}}},
            ]
        yield {
            "name": name,
            "quote": True,
            "description": escape_jinja(told.get(name, "Of a look-up, or a part of a sketch.")),
            "data_type": str(type).lower(),
            **({"data_tests": tests} if tests else {}),
        }


def make_uniqueness(view: CompiledView) -> dict[str, Any]:
    """Test that a key has one row in a window: NULL is a key too, so both are compared as one value."""
    names = [
        *([GROUPING] if view.grouped else []),
        *(each.name for each in view.keys),
        "window_start",
        "window_end",
    ]
    return {
        "unique": {
            "name": f"{view.pipeline}_{view.name}_has_one_row_for_a_key_and_window",
            "arguments": {"column_name": f"row({join_names(names)})"},
        }
    }


def join_names(names: Sequence[str]) -> str:
    """Write names of columns as a list."""
    return ", ".join(map(quote_ansi_name, names))


def make_completeness(view: CompiledView, within: timedelta, severity: str) -> dict[str, Any]:
    """Test that windows which ended long enough ago are certified."""
    period = count_period(within)
    return {
        "accepted_values": {
            "name": f"{view.pipeline}_{view.name}_is_certified_where_it_should_be",
            "arguments": {"column_name": "certified", "values": [True], "quote": False},
            "config": {
                "severity": severity,
                "where": f"window_end < now() - INTERVAL {period['count']} {period['period']}",
            },
        }
    }


def escape_jinja(text: str) -> str:
    """Keep dbt from reading a text as a template, which it does with descriptions."""
    return f"{{% raw %}}{text}{{% endraw %}}" if JINJA.search(text) else text
