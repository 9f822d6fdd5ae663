"""``CREATE DERIVED``: rows that are made of those of sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.changes import Changelog
from seamline.model.definition.patterns import Pattern
from seamline.model.sql.joins import begins_join, read_join, read_joined_source
from seamline.model.sql.match_recognize import read_match_recognize
from seamline.model.sql.options import list_settings, read_options, refuse_options, take_settings
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Derived, Names
from seamline.model.sql.slices import qualify, unquote
from seamline.model.sql.tokens import SqlToken

SAMPLE = (
    "write CREATE DERIVED name AS SELECT * FROM left JOIN right ON ..., ... FROM source MATCH_RECOGNIZE (...), "
    "or AS CHANGELOG OF source."
)
OTHERWISE = ("name", "left", "right", "versions", "null_safe", "of", "keys", "steps", "within", "skip")
"""Settings of derived rows that clauses have."""
IN_PYTHON = (
    "rows by a function of yours (Process, CoGroup, Ask) are written in Python: Pipeline(derive=[...])."
)


def read_derived(reader: Reader, name: str, token: SqlToken, names: Names) -> Derived:
    """Read what stands behind ``CREATE DERIVED name``."""
    reader.expect("AS", hint=SAMPLE)
    if reader.accept("CHANGELOG"):
        reader.expect("OF", hint="write AS CHANGELOG OF source.")
        named = reader.name("the name of a source")
        return Changelog(
            name, names.find_source(reader, named, unquote(named)).source.name, origin=reader.origin(token)
        )
    reader.expect("SELECT", hint=SAMPLE)
    if not reader.accept_symbol("*"):
        reader.fail(
            "Derived rows have all columns of their sources.", "write SELECT *; a view chooses among them."
        )
    reader.expect("FROM", hint=SAMPLE)
    side = read_joined_source(reader, names)
    if reader.accept("MATCH_RECOGNIZE"):
        with reader.within("MATCH_RECOGNIZE"):
            found: Derived = read_match_recognize(reader, name, token, side.declared)
        return replace(found, **take_row_settings(reader, Pattern))
    if not begins_join(reader):
        reader.fail(f"Nothing is derived before {reader.next.shown}.", f"{SAMPLE} {IN_PYTHON}")
    joined, prefixes = read_join(reader, name, token, side, names)
    more: dict[str, Any] = {}
    if reader.is_words("WHERE"):
        condition = reader.take()
        with reader.within("WHERE"):
            more["where"] = qualify(reader.expression("The condition", ("WITH",)), prefixes).text
            if isinstance(joined, AsOf):
                reader.fail(
                    "A join as of a time has no WHERE.",
                    "say which rows of a side count: WITH (left_where = '...', versions_where = '...').",
                    condition,
                )
    more |= take_row_settings(reader, type(joined))
    return replace(joined, **more)


def take_row_settings(reader: Reader, kind: type) -> Mapping[str, Any]:
    """Read the options of derived rows."""
    options = read_options(reader)
    known = {*list_settings(kind)} - ({*OTHERWISE} if kind is Pattern else {*OTHERWISE, "where"})
    with reader.within("WITH"):
        taken = take_settings(reader, kind, options, besides={*list_settings(kind)} - known)
        refuse_options(reader, options, known, {})
    return taken
