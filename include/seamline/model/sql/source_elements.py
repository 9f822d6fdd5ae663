"""What stands between the brackets of a source: columns, event time, constraints and steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seamline.model.definition.sources import Rule
from seamline.model.sql.durations import read_interval
from seamline.model.sql.reader import ASCII_NAME, Reader
from seamline.model.sql.slices import SqlText, unquote
from seamline.model.sql.tokens import SqlToken, TokenKind
from seamline.model.types.schema import parse_field

FOREIGN = {
    "METADATA": "of a record there are _key, _headers, _topic, _partition, _offset and _kafka_timestamp: name AS _key.",
    "DEFAULT": "write a column derived from it: name AS coalesce(column, value).",
    "GENERATED": "write a column derived from others: name AS expression.",
    "PRIMARY": "write PRIMARY KEY (column) NOT ENFORCED behind the columns.",
    "UNIQUE": "write UNIQUE (column) behind the columns.",
    "CHECK": "write CONSTRAINT name CHECK (condition) behind the columns: quarantine calls records by the name.",
    "REFERENCES": "write CREATE LOOKUP, or CREATE DERIVED with a JOIN.",
    "COMMENT": "write a comment: -- ...",
    "NULL": "leave it out: a column may be NULL unless it is NOT NULL.",
}
"""What other dialects have behind the type of a column, and what to write instead."""


@dataclass
class SourceParts:
    """What stands in the brackets of a source."""

    columns: list[str] = field(default_factory=list)
    """The columns as Spark DDL."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the source that clauses have."""
    rules: list[Rule] = field(default_factory=list)
    """The constraints."""
    select: dict[str, str] = field(default_factory=dict)
    """The derived columns."""
    side: dict[str, str] = field(default_factory=dict)
    """The named sides."""
    added: list[str] = field(default_factory=list)
    """The columns that the topic got later."""
    names: list[str] = field(default_factory=list)
    """The names of all columns."""
    lateness: str | None = None
    """How far the watermark stays behind, if that is said."""
    places: dict[str, SqlToken] = field(default_factory=dict)
    """Where each part stands, by its field in the source."""


def read_element(reader: Reader, parts: SourceParts) -> None:
    """Read a column or another element between the brackets."""
    for words, read in ELEMENTS.items():
        if reader.is_words(*words.split()) and begins_element(reader):
            with reader.within(words):
                return read(reader, parts)
    read_declared_column(reader, parts)


def begins_element(reader: Reader) -> bool:
    """Return whether a word that an element may begin with is not the name of a column."""
    if reader.next.word in ("UNIQUE", "CHECK"):
        return reader.peek().symbol == "("
    return reader.next.word != "SIDE" or reader.peek(2).word == "AS"


def read_declared_column(reader: Reader, parts: SourceParts) -> None:
    """Read ``name TYPE [NOT NULL] [ADDED]``, or ``name AS expression``."""
    token = reader.name("a column")
    name = unquote(token)
    with reader.within(f"column {name}"):
        if name in parts.names:
            reader.fail(f"Column {name!r} is declared twice.", "delete one of them.", token)
        parts.names.append(name)
        if reader.accept("AS"):
            found = reader.expression("The expression")
            parts.select[name], parts.places[f"select[{name}]"] = found.text, found.token
            return
        column = read_typed_column(reader, token)
        if reader.accept("ADDED"):
            parts.added.append(column)
            parts.places.setdefault("added", token)
        else:
            parts.columns.append(column)
            parts.places.setdefault("schema", token)
        refuse_foreign(reader)


def read_typed_column(reader: Reader, token: SqlToken) -> str:
    """Read ``TYPE [NOT NULL]`` behind a column's name, and return the column as Spark DDL."""
    name = unquote(token)
    begin, depth = reader.at, 0
    while reader.next.kind is not TokenKind.END:
        symbol = reader.next.symbol
        if depth == 0 and (symbol in (",", ")", ";") or reader.next.word in (*FOREIGN, "ADDED")):
            break
        depth += (symbol in ("(", "<")) - (symbol in (")", ">"))
        if reader.is_words("NOT", "NULL"):
            reader.take()
        reader.take()
    if reader.at == begin:
        refuse_foreign(reader)
        reader.fail(f"Column {name!r} has no type.", "write a type behind its name: STRING, INT, TIMESTAMP.")
    spelled = reader.slice(begin, reader.at)
    written = name if ASCII_NAME.fullmatch(name) else token.text
    column = f"{written} {spelled.text}"
    reader.attempt(token, lambda: parse_field(column))
    return column


def refuse_foreign(reader: Reader) -> None:
    """Refuse what other dialects have behind a column."""
    if reader.next.word in FOREIGN:
        reader.fail(f"{reader.next.shown} does not belong behind a column.", FOREIGN[reader.next.word])


def read_rule(reader: Reader, parts: SourceParts) -> None:
    """Read ``CONSTRAINT name CHECK (condition)``."""
    token = reader.take()
    named = reader.next
    if named.word == "CHECK":
        refuse_check(reader, parts)
    name = unquote(reader.name("the name of a constraint"))
    reader.expect("CHECK", hint="write CONSTRAINT name CHECK (condition).")
    found = reader.bracketed("The condition")
    if any(rule.name == name for rule in parts.rules):
        reader.fail(f"Constraint {name!r} is declared twice.", "rename one of them.", named)
    parts.rules.append(Rule(name, found.text, origin=reader.origin(token)))
    parts.places[f"rules[{name}]"] = found.token


def refuse_check(reader: Reader, parts: SourceParts) -> None:
    """Refuse a condition without a name."""
    reader.fail(
        "The condition has no name.", "quarantine calls refused records by it: CONSTRAINT name CHECK (...)."
    )


def read_named_side(reader: Reader, parts: SourceParts) -> None:
    """Read ``SIDE name AS condition``."""
    reader.take()
    token = reader.name("the name of a side")
    name = unquote(token)
    reader.expect("AS", hint="write SIDE name AS condition.")
    found = reader.expression("The condition")
    if name in parts.side:
        reader.fail(f"JoinedSource {name!r} is declared twice.", "rename one of them.", token)
    parts.side[name], parts.places[f"side[{name}]"] = found.text, found.token


def read_watermark(reader: Reader, parts: SourceParts) -> None:
    """Read ``WATERMARK FOR column [AS column - INTERVAL '10 minutes']``."""
    token = reader.take()
    if "event_time" in parts.settings:
        reader.fail("The watermark is declared twice.", "a source has one event time.", token)
    reader.expect("FOR", hint="write WATERMARK FOR column.")
    found = reader.expression("The event time", ("AS",))
    parts.settings["event_time"], parts.places["event_time"] = found.text, found.token
    if reader.accept("AS"):
        again = read_times(reader)
        if again.text != found.text:
            reader.fail(
                f"The watermark of {found.text} is of {again.text}.",
                "name the same column twice.",
                again.token,
            )
        parts.places["watermark"] = again.token
        hint = f"write AS {found.text} - INTERVAL '1 second', or leave AS out for the default of 10 minutes."
        reader.expect_symbol("-", hint)
        parts.lateness = read_interval(reader)


def read_times(reader: Reader) -> SqlText:
    """Read the event time up to what is taken from it."""
    return reader.expression("The event time", symbols=",;-")


def list_columns(reader: Reader) -> list[str]:
    """Read names of columns in brackets."""
    return reader.list_items(lambda: unquote(reader.name("a column")), "write the columns in brackets.")


def read_unique(reader: Reader, parts: SourceParts) -> None:
    """Read ``UNIQUE (column, ...)``: what identifies an event."""
    token = reader.take()
    refuse_second(reader, parts, "event_id", token)
    parts.settings["event_id"], parts.places["event_id"] = list_columns(reader), token


def read_primary_key(reader: Reader, parts: SourceParts) -> None:
    """Read ``PRIMARY KEY (column, ...) NOT ENFORCED``: which row of a table a record is about."""
    token = reader.take()
    refuse_second(reader, parts, "key", token)
    reader.expect("KEY", hint="write PRIMARY KEY (column, ...) NOT ENFORCED.")
    parts.settings["key"], parts.places["key"] = list_columns(reader), token
    reader.expect(
        "NOT",
        "ENFORCED",
        hint="records are changes of a table's rows, and several may be of one: write NOT ENFORCED. What identifies "
        "an event is UNIQUE (column, ...).",
    )


def refuse_second(reader: Reader, parts: SourceParts, name: str, token: SqlToken) -> None:
    """Refuse a clause that a source has once."""
    if name in parts.settings:
        reader.fail(f"{token.shown} is there twice.", "delete one of them.", token)


ELEMENTS: Mapping[str, Callable[[Reader, SourceParts], None]] = {
    "CONSTRAINT": read_rule,
    "SIDE": read_named_side,
    "WATERMARK FOR": read_watermark,
    "CHECK": refuse_check,
    "UNIQUE": read_unique,
    "PRIMARY KEY": read_primary_key,
}
