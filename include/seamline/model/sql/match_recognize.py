"""``MATCH_RECOGNIZE (...)``: a pattern in the rows of a key."""

from __future__ import annotations

from typing import Any

from seamline.model.definition.patterns import Pattern
from seamline.model.sql.durations import read_interval
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import DeclaredSource
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken

SAMPLE = (
    "write MATCH_RECOGNIZE (PARTITION BY key ORDER BY time MEASURES count(a) AS n PATTERN (a{3,} b) "
    "WITHIN INTERVAL '10 minutes' DEFINE a AS condition)."
)
PARTS = ("PARTITION", "ORDER", "MEASURES", "ALL", "ONE", "AFTER", "PATTERN", "WITHIN", "DEFINE")


def read_match_recognize(reader: Reader, name: str, token: SqlToken, source: DeclaredSource) -> Pattern:
    """Read what stands behind ``MATCH_RECOGNIZE``."""
    reader.expect_symbol("(", SAMPLE)
    reader.expect("PARTITION", "BY", hint=SAMPLE)
    keys = [unquote(reader.name("a column"))]
    while reader.accept_symbol(","):
        reader.refuse_comma(PARTS)
        keys.append(unquote(reader.name("a column")))
    reader.expect("ORDER", "BY", hint=SAMPLE)
    ordered = reader.expression("The event time", PARTS)
    if ordered.text != source.source.event_time:
        reader.fail(
            f"Rows are not in the order of {ordered.text}.",
            f"write ORDER BY {source.source.event_time}, the event time.",
            ordered.token,
        )
    select = read_named(reader) if reader.accept("MEASURES") else {}
    if reader.is_words("ALL", "ROWS"):
        reader.fail("A match is not all of its rows.", "write ONE ROW PER MATCH, or leave it out.")
    reader.accept("ONE", "ROW", "PER", "MATCH")
    skip = read_skip(reader)
    reader.expect("PATTERN", hint=SAMPLE)
    steps = reader.bracketed("The pattern").text
    reader.expect("WITHIN", hint="a match ends within some time: PATTERN (...) WITHIN INTERVAL '10 minutes'.")
    within = read_interval(reader)
    define = {}
    if reader.accept("DEFINE"):
        define = read_defined(reader)
    reader.expect_symbol(")", SAMPLE)
    said: dict[str, Any] = {"skip": skip} if skip else {}
    return Pattern(
        name,
        source.source.name,
        keys,
        steps,
        within,
        define,
        select,
        origin=reader.origin(token),
        **said,
    )


def read_skip(reader: Reader) -> str:
    """Read ``AFTER MATCH SKIP ...``; empty where it is not there."""
    if not reader.accept("AFTER", "MATCH", "SKIP"):
        return ""
    for words in ("PAST LAST ROW", "TO NEXT ROW"):
        if reader.accept(*words.split()):
            return words.lower()
    reader.fail(f"{reader.next.shown} is nowhere to skip to.", "write PAST LAST ROW or TO NEXT ROW.")


def read_named(reader: Reader) -> dict[str, str]:
    """Read ``expression AS name, ...``."""
    found: dict[str, str] = {}
    while not found or reader.accept_symbol(","):
        if found:
            reader.refuse_comma(PARTS)
        shown = reader.expression("The measure", ("AS", *PARTS))
        reader.expect("AS", hint="name what the match shows: count(a) AS n.")
        token = reader.name("the name of a measure")
        refuse_twice(reader, found, token)
        found[unquote(token)] = shown.text
    return found


def read_defined(reader: Reader) -> dict[str, str]:
    """Read ``name AS condition, ...``."""
    found: dict[str, str] = {}
    while not found or reader.accept_symbol(","):
        if found:
            reader.refuse_comma()
        token = reader.name("the name of a step")
        refuse_twice(reader, found, token)
        reader.expect("AS", hint="write DEFINE step AS condition.")
        found[unquote(token)] = reader.expression("The condition").text
    return found


def refuse_twice(reader: Reader, found: dict[str, str], token: SqlToken) -> None:
    """Refuse a name that is there already."""
    if unquote(token) in found:
        reader.fail(f"{token.shown} is there twice.", "rename one of them.", token)
