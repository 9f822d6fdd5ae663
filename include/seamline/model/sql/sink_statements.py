"""``CREATE SINK``: where a view's answer goes beside its tables, or records that are in none."""

from __future__ import annotations

from dataclasses import MISSING, fields

from seamline.model.definition.sinks.kinds import SINKS
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.model.sql.options import list_settings, read_options, refuse_options, take_settings, take_text
from seamline.model.sql.reader import Reader
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken

SAMPLE = "write CREATE SINK name FROM view WITH (connector = 'kafka', topic = '...');"
KINDS = {kind.kind: kind for kind in SINKS}
OTHERWISE = ("view", "of", "name")
"""What stands behind FROM, and the name."""


def read_sink(reader: Reader, name: str, token: SqlToken, views: dict[str, SqlToken]) -> AnySink:
    """Read what stands behind ``CREATE SINK [name]``."""
    reader.expect("FROM", hint=SAMPLE)
    named = reader.name("the name of a view, or of a side")
    options = read_options(reader)
    where = options["connector"].token if "connector" in options else token
    with reader.within("WITH"):
        kind = KINDS.get(said := take_text(reader, options, "connector", token))
        if kind is None:
            told = f"There is no connector {said!r} for a sink."
            reader.fail(told, f"there are {', '.join(KINDS)}.", where)
        made = take_settings(reader, kind, options, besides=OTHERWISE)
        refuse_options(reader, options, {*list_settings(kind), "connector"} - {*OTHERWISE}, {})
        for each in fields(kind):
            if each.name not in (*made, *OTHERWISE) and each.default is each.default_factory is MISSING:
                reader.fail(f"{each.name} is missing.", SAMPLE, token)
    if issubclass(kind, Sink) and unquote(named) not in views:
        told = f"There is no view {unquote(named)!r} before this."
        reader.fail(told, f"there are {', '.join(views) or 'none'}.", named)
    sent = {"view" if issubclass(kind, Sink) else "of": unquote(named)}
    return kind(name=name, origin=reader.origin(token), **sent, **made)
