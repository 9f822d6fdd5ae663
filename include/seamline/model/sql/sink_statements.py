"""``CREATE SINK``: where a view's answer goes beside its tables."""

from __future__ import annotations

from dataclasses import MISSING, fields

from seamline.model.definition.sinks.kinds import SINKS
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.sql.options import list_settings, read_options, refuse_options, take_settings, take_text
from seamline.model.sql.reader import Reader
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken

SAMPLE = "write CREATE SINK name FROM view WITH (connector = 'kafka', topic = '...');"
KINDS = {kind.kind: kind for kind in SINKS if issubclass(kind, Sink)}
OTHERWISE = ("view", "name")


def read_sink(reader: Reader, name: str, token: SqlToken, views: dict[str, SqlToken]) -> Sink:
    """Read what stands behind ``CREATE SINK [name]``."""
    reader.expect("FROM", hint=SAMPLE)
    named = reader.name("the name of a view")
    view = unquote(named)
    if view not in views:
        reader.fail(
            f"There is no view {view!r} before this.", f"there are {', '.join(views) or 'none'}.", named
        )
    options = read_options(reader)
    with reader.within("WITH"):
        where = options["connector"].token if "connector" in options else token
        kind = take_text(reader, options, "connector", token)
        if kind not in KINDS:
            reader.fail(
                f"There is no connector {kind!r} for a sink.", f"there are {', '.join(KINDS)}.", where
            )
        made = take_settings(reader, KINDS[kind], options, besides=OTHERWISE)
        refuse_options(reader, options, {*list_settings(KINDS[kind]), "connector"} - {*OTHERWISE}, {})
        for each in fields(KINDS[kind]):
            if each.name not in (*made, *OTHERWISE) and each.default is each.default_factory is MISSING:
                reader.fail(f"{each.name} is missing.", SAMPLE, token)
    return KINDS[kind](view=view, name=name, origin=reader.origin(token), **made)
