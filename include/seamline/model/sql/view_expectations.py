"""``EXPECT``: what each interval of a certified generation of a view must meet."""

from __future__ import annotations

from typing import Any

from seamline.model.definition.expectations import Expect, Expectation, ExpectRows
from seamline.model.sql.durations import read_number
from seamline.model.sql.options import TRUTHS
from seamline.model.sql.reader import Reader
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import TokenKind
from seamline.model.sql.words import CLAUSES

HINT = (
    "write column >= 1, <= 5, BETWEEN 1 AND 5, IS NOT NULL, IS UNIQUE, IN ('a', 'b') or RLIKE 'pattern', "
    "ROWS >= 1, or ROWS CHANGE <= 0.5; a suite of Great Expectations is written in Python."
)


def read_expectations(reader: Reader) -> list[Expectation]:
    """Read ``EXPECT test [AND test], ...`` where it stands next."""
    found: list[Expectation] = []
    if not reader.accept("EXPECT"):
        return found
    with reader.within("EXPECT"):
        found.append(read_expectation(reader))
        while reader.accept_symbol(","):
            reader.refuse_comma(CLAUSES)
            found.append(read_expectation(reader))
    return found


def read_expectation(reader: Reader) -> Expectation:
    """Read the tests of one column, or of the number of rows."""
    token = reader.next
    rows = token.word == "ROWS"
    name = unquote(reader.name("a column"))
    said: dict[str, Any] = {}
    while True:
        read_test(reader, said, rows=rows)
        if not reader.accept("AND"):
            break
        again = reader.next
        if unquote(reader.name("a column")) != name:
            reader.fail(
                f"{again.shown} is another column.", "put a comma between what is expected of two.", again
            )
    origin = reader.origin(token)
    return ExpectRows(**said, origin=origin) if rows else Expect(name, **said, origin=origin)


def read_test(reader: Reader, said: dict[str, Any], *, rows: bool) -> None:
    """Read one test into what an expectation says."""
    token = reader.next
    if rows and reader.accept("CHANGE"):
        reader.expect_symbol("<=", HINT)
        found: dict[str, Any] = {"max_change": read_number(reader, "a share")}
    elif reader.accept_symbol(">="):
        found = {"at_least": read_number(reader, "a bound")}
    elif reader.accept_symbol("<="):
        found = {"at_most": read_number(reader, "a bound")}
    elif reader.accept("BETWEEN"):
        least = read_number(reader, "a bound")
        reader.expect("AND", hint=HINT)
        found = {"at_least": least, "at_most": read_number(reader, "a bound")}
    else:
        found = {} if rows else read_column_test(reader)
    if not found:
        reader.fail(f"{reader.next.shown} is no test.", HINT, token)
    if twice := [name for name in found if name in said]:
        reader.fail(f"{twice[0]} is said twice.", "delete one of them.", token)
    said |= found


def read_column_test(reader: Reader) -> dict[str, Any]:
    """Read a test that only a column has; nothing where none stands next."""
    if reader.accept("IS", "NOT", "NULL"):
        return {"not_null": True}
    if reader.accept("IS", "UNIQUE"):
        return {"unique": True}
    if reader.accept("IN"):
        return {"in_set": reader.list_items(lambda: read_set_value(reader), "write IN ('a', 'b').")}
    if reader.accept("RLIKE"):
        return {"regex": reader.string("a pattern")}
    return {}


def read_set_value(reader: Reader) -> Any:
    """Read a value that a column may have."""
    if reader.next.word in TRUTHS:
        return TRUTHS[reader.take().word]
    if reader.next.kind in (TokenKind.TEXT, TokenKind.RAW):
        return reader.string("a value")
    return read_number(reader, "a value")
