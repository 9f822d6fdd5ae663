"""What is wrong with sinks into PostgreSQL and Redis."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seamline.model.compile.problems import Problems
from seamline.model.definition.format_base import CONNECTION
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.windows import Global
from seamline.model.time.intervals import parse_duration

NAME = re.compile(r"[a-z_][a-z0-9_]*")
LONGEST_TABLE = 50
"""Bytes of a table's name: PostgreSQL cuts names at 63 without a word, and a view and indexes are named after it."""
LONGEST_NAME = 63
"""Bytes of any name in PostgreSQL."""
OURS = ("seamline_positions",)
"""Tables that sinks keep for themselves."""
MOST_AT_ONCE = 40_000
"""Rows that a script of Redis may change: no sink writes more in one transaction."""
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
"""Columns that each table of PostgreSQL has, by whose names there is no other."""


def check_postgres_sink(pipeline: Pipeline, sink: PostgresSink, problems: Problems) -> None:
    """Note names that PostgreSQL would refuse or cut, of the table or of the view's columns."""
    field = f"sinks[{sink.id}]"
    check_connection(sink, problems)
    for setting, longest in (("table", LONGEST_TABLE), ("schema", LONGEST_NAME)):
        name = getattr(sink, setting)
        if not NAME.fullmatch(name) or len(name) > longest or name.startswith("pg_"):
            problems.note(
                f"{field}.{setting}",
                sink.origin,
                f"{name!r} is not a name that a {setting} can have here.",
                f"use lower-case letters, digits and underscores, {longest} at most, and not pg_ in front.",
            )
    if sink.table in OURS:
        told = f"Table {sink.table!r} keeps the positions of sinks."
        problems.note(f"{field}.table", sink.origin, told, "name a table of its own.")
    for name in list_column_names(pipeline, sink.view):
        if name.lower() in SYSTEM_COLUMNS or len(name) > LONGEST_NAME:
            problems.note(
                f"{field}.view",
                sink.origin,
                f"PostgreSQL can have no column {name!r}.",
                f"rename it: no column is named {', '.join(SYSTEM_COLUMNS)}, or longer than {LONGEST_NAME} letters.",
            )


def list_column_names(pipeline: Pipeline, wanted: str) -> Iterator[str]:
    """List the keys and measures of a view, none where there is no such view."""
    for view in pipeline.views:
        if view.name == wanted:
            yield from (*view.keys, *view.measures)


def check_redis_sink(pipeline: Pipeline, sink: RedisSink, problems: Problems) -> None:
    """Note a prefix that would move keys to other slots, and an end of rows that there is not."""
    field = f"sinks[{sink.id}]"
    check_connection(sink, problems)
    if "{" in sink.prefix or not sink.prefix.isprintable():
        problems.note(
            f"{field}.prefix",
            sink.origin,
            f"{sink.prefix!r} cannot stand before {{PIPELINE.SINK}}, by which a cluster knows a key's slot.",
            "use letters that can be printed, and no brace.",
        )
    if not 1 <= sink.at_once <= MOST_AT_ONCE:
        told = f"{sink.at_once!r} is out of range."
        problems.note(
            f"{field}.at_once", sink.origin, told, f"use a whole number from 1 to {MOST_AT_ONCE:,}."
        )
    if sink.expire is None:
        return
    problems.attempt(f"{field}.expire", sink.origin, lambda: parse_duration(str(sink.expire)))
    if any(isinstance(view.window, Global) for view in pipeline.views if view.name == sink.view):
        told = "The one window of a view with Global() does not end."
        problems.note(f"{field}.expire", sink.origin, told, "leave expire= out.")


def check_connection(sink: DeadLetterSink | KafkaSink | PostgresSink | RedisSink, problems: Problems) -> None:
    """Note what cannot be the name of a connection."""
    if not CONNECTION.fullmatch(sink.connection):
        problems.note(
            f"sinks[{sink.id}].connection",
            sink.origin,
            f"{sink.connection!r} is not a valid name of a connection.",
            "the name of an Airflow connection has letters, digits, _, - and dots.",
        )
