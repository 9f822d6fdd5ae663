"""``CREATE SOURCE``: a topic or a table, its columns, event time, rules and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from seamline.model.definition.counts import Counts
from seamline.model.definition.format_base import Format
from seamline.model.definition.formats import FORMATS
from seamline.model.definition.sources import DeltaSource, KafkaSource, Source
from seamline.model.protocol.watermark import Watermark
from seamline.model.sql.options import (
    Options,
    list_settings,
    read_options,
    refuse_options,
    take_settings,
    take_text,
)
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import DeclaredSource
from seamline.model.sql.source_elements import SourceParts, read_element
from seamline.model.sql.tokens import SqlToken

SAMPLE = "write CREATE SOURCE name (column TYPE, ..., WATERMARK FOR column) WITH (connector = 'kafka', topic = '...');"
CONNECTORS: Mapping[str, type[Source]] = {"kafka": KafkaSource, "delta": DeltaSource}
BY_FORMAT: Mapping[str, type[Format]] = {each.kind: each for each in FORMATS}
OTHERWISE = ("name", "schema", "event_time", "event_id", "added", "where", "key", "decimals")
"""Settings of a source that clauses have."""
CLAUSES = {
    "name": "it stands behind CREATE SOURCE.",
    "schema": "columns stand in the brackets: name TYPE.",
    "event_time": "write WATERMARK FOR column among the columns.",
    "event_id": "write UNIQUE (column, ...) among the columns.",
    "added": "write ADDED behind the type of the column.",
    "where": "write WHERE condition behind the columns.",
    "key": "write PRIMARY KEY (column, ...) NOT ENFORCED among the columns.",
    "rules": "write CONSTRAINT name CHECK (condition) among the columns.",
    "select": "write name AS expression among the columns.",
    "side": "write SIDE name AS condition among the columns.",
    "lookups": "write CREATE LOOKUP.",
    "watermark": "write WATERMARK FOR column AS column - INTERVAL '10 minutes' among the columns.",
    "columns": "a pipeline whose table has other names for its columns is written in Python: DeltaSource(columns=).",
}


def read_source(reader: Reader, name: str, token: SqlToken) -> tuple[DeclaredSource, dict[str, SqlToken]]:
    """Read what stands behind ``CREATE SOURCE name``: the source, and where its parts stand."""
    parts = SourceParts()
    reader.list_items(lambda: read_element(reader, parts), SAMPLE)
    if reader.accept("WHERE"):
        with reader.within("WHERE"):
            found = reader.expression("The condition", ("WITH",))
        parts.settings["where"], parts.places["where"] = found.text, found.token
    if "event_time" not in parts.settings:
        reader.fail(
            f"Source {name!r} has no event time.", "write WATERMARK FOR column among its columns.", token
        )
    if not parts.columns:
        reader.fail(f"Source {name!r} has no columns.", SAMPLE, token)
    options = read_options(reader)
    parts.places |= {each.name: each.token for each in options.values()}
    with reader.within("WITH"):
        connector = take_text(reader, options, "connector", token)
        if connector not in CONNECTORS:
            reader.fail(
                f"There is no connector {connector!r} for a source.",
                f"there are {', '.join(CONNECTORS)}.",
                parts.places["connector"],
            )
        source = build_source(reader, CONNECTORS[connector], name, token, parts, options)
    return DeclaredSource(source, frozenset(parts.names)), parts.places


def build_source(
    reader: Reader, kind: type[Source], name: str, token: SqlToken, parts: SourceParts, options: Options
) -> Source:
    """Make the source of its parts and options."""
    known = {each.name for each in fields(kind)}
    made = take_settings(reader, kind, options, besides=OTHERWISE)
    steps = {"rules": parts.rules, "select": parts.select, "side": parts.side, "added": parts.added}
    made |= {**parts.settings, **{each: said for each, said in steps.items() if said}}
    if kind is KafkaSource:
        made |= take_format(reader, options)
        counts = take_settings(reader, Counts, options, before="counts.")
        if counts:
            if "topic" not in counts:
                reader.fail(
                    "counts.topic is missing.",
                    "write counts.topic = '...', the topic of the statements.",
                    token,
                )
            made["counts"] = Counts(**counts, origin=reader.origin(token))
    idle = {"idle_after": take_text(reader, options, "idle_after", token)} if "idle_after" in options else {}
    late = {"out_of_orderness": parts.lateness} if parts.lateness is not None else {}
    if idle or late:
        made["watermark"] = Watermark(**late, **idle)
    settings = {each for each in list_settings(kind) if each not in OTHERWISE} | {"connector", "idle_after"}
    refuse_options(reader, options, settings, CLAUSES)
    place = "topic" if kind is KafkaSource else "table"
    for each in (place, *(each for each in made if each not in known)):
        if each not in made or each not in known:
            reader.fail(
                f"{each} {'is missing' if each in known else 'is not of this connector'}.", SAMPLE, token
            )
    return kind(name=name, schema=", ".join(parts.columns), origin=reader.origin(token), **made)


def take_format(reader: Reader, options: Options) -> dict[str, Any]:
    """Take the format and its options: ``format = 'csv', csv.delimiter = ';'``."""
    if "format" not in options:
        return {}
    token = options["format"].token
    kind = take_text(reader, options, "format", token)
    if kind not in BY_FORMAT:
        reader.fail(f"There is no format {kind!r}.", f"there are {', '.join(BY_FORMAT)}.", token)
    chosen = take_settings(reader, BY_FORMAT[kind], options, before=f"{kind}.")
    return {"format": BY_FORMAT[kind](**chosen) if chosen else kind}
