"""``CREATE VIEW``: keyed, windowed measures as a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from seamline.model.definition.pipeline import View
from seamline.model.sql.join_conditions import JoinedSource
from seamline.model.sql.joins import begins_join, read_alias, read_join
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Derived, Names, Scope
from seamline.model.sql.select_clauses import (
    SAMPLE,
    name_list,
    read_grouped,
    read_shown,
    skip_select,
    text_of,
    window_of,
)
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken
from seamline.model.sql.view_expectations import read_expectations
from seamline.model.sql.words import CLAUSES

REFUSED = {
    "HAVING": "a view has all its rows; name the condition when you read: seamline query VIEW --where.",
    "ORDER": "rows have an order when they are read.",
    "LIMIT": "the most frequent values of a column are top(x, 10).",
    "QUALIFY": "the most frequent values of a column are top(x, 10).",
    "WINDOW": "windows are in GROUP BY: TUMBLE(time, INTERVAL '1 hour').",
    "UNION": "count the rows of several sources: FROM (TABLE a UNION ALL TABLE b).",
    "EXCEPT": "a view is one query; declare a view for each.",
    "INTERSECT": "a view is one query; declare a view for each.",
    "EMIT": "a sink says which rows are sent: WITH (when = 'change'), 'complete' or 'certified'.",
    "WITH": "a view has no settings; those of the pipeline are in CREATE PIPELINE.",
    "MATCH_RECOGNIZE": "write CREATE DERIVED name AS SELECT * FROM source MATCH_RECOGNIZE (...), and count its rows.",
}
"""Clauses that a view's query does not have, and what to write instead."""
IN_BRACKETS = {
    "SELECT": "a query is over a source: name derived rows with CREATE DERIVED, and count them.",
    "VALUES": "a query is over a source.",
}


@dataclass
class ReadView:
    """A view as it was read."""

    view: View
    """The view."""
    rows: Derived | None
    """The rows of a join that stands in the query."""
    places: dict[str, SqlToken] = field(default_factory=dict)
    """Where its parts stand, by field."""


def read_view(reader: Reader, name: str, token: SqlToken, names: Names) -> ReadView:
    """Read what stands behind ``CREATE VIEW name``."""
    reader.expect("AS", hint=f"write CREATE VIEW {name} AS SELECT ...")
    if reader.is_words("WITH"):
        reader.fail("A view has no WITH.", "name derived rows with CREATE DERIVED.")
    places = {"of": reader.next}
    reader.expect("SELECT", hint=SAMPLE)
    begin = skip_select(reader)
    reader.take()
    places["of"] = reader.next
    with reader.within("FROM"):
        scope, rows = read_from(reader, name, token, names)
        explode, at = read_unnest(reader, scope)
    places |= {"explode": at} if at else {}
    end, reader.at = reader.at, begin
    with reader.within("SELECT"):
        shown = read_shown(reader, scope)
    reader.at = end
    more: dict[str, Any] = {"explode": explode} if explode else {}
    if reader.accept("WHERE"):
        with reader.within("WHERE"):
            found = reader.expression("The condition", CLAUSES)
        more["where"], places["where"] = text_of(scope, found), found.token
    places["keys"] = reader.next
    grouped = read_grouped(reader, scope, shown)
    refuse_clauses(reader)
    places["expect"] = reader.next
    if expected := read_expectations(reader):
        more["expect"] = expected
    refuse_clauses(reader)
    more |= {"grouping_sets": grouped.sets} if grouped.sets else {}
    places |= {f"measures[{each}]": found for each, found in shown.places.items()}
    places |= {"window": grouped.token} if grouped.token else {}
    view = View(
        name,
        grouped.keys,
        window_of(grouped),
        shown.measures,
        of=name_list(scope.of),
        origin=reader.origin(token),
        **more,
    )
    return ReadView(view, rows, {f"views[{name}].{each}": found for each, found in places.items()})


def refuse_clauses(reader: Reader) -> None:
    """Refuse a clause that a view's query does not have."""
    if reader.next.word in REFUSED:
        reader.fail(f"A view has no {reader.next.word}.", REFUSED[reader.next.word])


def read_from(reader: Reader, name: str, token: SqlToken, names: Names) -> tuple[Scope, Derived | None]:
    """Read whose rows are counted: of a source, of several, of derived rows, or of a join that stands here."""
    if reader.next.symbol == "(":
        if reader.peek().word in IN_BRACKETS:
            reader.fail("There is a query in the query.", IN_BRACKETS[reader.peek().word])
        return names.scope_of_union(reader, read_union(reader)), None
    if reader.is_words("TABLE") and reader.peek().symbol == "(":
        reader.fail("A window is not in FROM.", "write it into GROUP BY: TUMBLE(time, INTERVAL '1 hour').")
    named = reader.name("the name of a source, or of derived rows")
    of = unquote(named)
    alias = read_alias(reader)
    if begins_join(reader):
        side = JoinedSource(names.find_source(reader, named, of), alias or of)
        joined, prefixes = read_join(reader, f"{name}_rows", token, side, names)
        time = side.declared.source.event_time
        return Scope((joined.name,), prefixes, frozenset({f"{prefixes[side.alias]}{time}"})), joined
    if reader.next.symbol == ",":
        reader.fail(
            "FROM has several names.",
            "write JOIN ... ON for pairs, or (TABLE a UNION ALL TABLE b) for the rows of both.",
        )
    return names.scope_of(reader, named, of, alias), None


def read_union(reader: Reader) -> list[tuple[SqlToken, str]]:
    """Read ``(TABLE a UNION ALL TABLE b)``."""
    hint = "write (TABLE a UNION ALL TABLE b)."
    reader.expect_symbol("(", hint)
    found = []
    while True:
        reader.expect("TABLE", hint=hint)
        token = reader.name("the name of a source")
        found.append((token, unquote(token)))
        if reader.accept_symbol(")"):
            return found
        reader.expect("UNION", "ALL", hint=hint)


def read_unnest(reader: Reader, scope: Scope) -> tuple[dict[str, str], SqlToken | None]:
    """Read ``CROSS JOIN UNNEST(array) AS item`` where it stands next."""
    if not reader.accept("CROSS", "JOIN", "UNNEST"):
        return {}, None
    found = reader.bracketed("The array")
    reader.accept("AS")
    token = reader.name("the name of an item")
    if reader.next.symbol == "(":
        reader.fail("An item has one name.", "write UNNEST(array) AS item; parts of it are item.part.")
    if reader.is_words("CROSS", "JOIN"):
        reader.fail("There is another array.", "a view counts the items of one; declare a view for each.")
    return {unquote(token): text_of(scope, found)}, found.token
