"""Joins of two sources: which rows belong together, by ``ON`` and by time."""

from __future__ import annotations

from typing import Any

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.joins import Join
from seamline.model.sql.join_conditions import BOUNDED, Condition, JoinedSource, read_condition, read_time_of
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Names
from seamline.model.sql.slices import unquote
from seamline.model.sql.tokens import SqlToken
from seamline.model.sql.words import CLAUSES, JOINS

OTHER_JOINS = {
    "FULL": "write JOIN; count(unmatched) counts left rows without a right one.",
    "RIGHT": "put the source whose rows are always there on the left.",
    "CROSS": "a join has equal keys: JOIN ... ON left.key = right.key.",
    "NATURAL": "name the keys: ON left.key = right.key.",
    "LEFT": "write JOIN, and count(unmatched) for left rows without a right one; or LEFT JOIN ... "
    "FOR SYSTEM_TIME AS OF.",
    "ASOF": "write LEFT JOIN versions FOR SYSTEM_TIME AS OF left.at ON left.key = versions.key.",
    "LATERAL": "an array's items are CROSS JOIN UNNEST(array) AS item.",
}


def read_joined_source(reader: Reader, names: Names) -> JoinedSource:
    """Read ``source [AS alias]``."""
    token = reader.name("the name of a source")
    declared = names.find_source(reader, token, unquote(token))
    return JoinedSource(declared, read_alias(reader) or declared.source.name)


def read_alias(reader: Reader) -> str:
    """Read ``AS name``, or a name alone; empty where there is none."""
    if reader.accept("AS"):
        return unquote(reader.name("a name"))
    if reader.next.word in CLAUSES | JOINS or not (reader.next.word or reader.next.text.startswith("`")):
        return ""
    return unquote(reader.name("a name"))


def begins_join(reader: Reader) -> bool:
    """Return whether a join of sources stands next; others than there are are refused."""
    if reader.is_words("CROSS", "JOIN", "UNNEST"):
        return False
    if reader.is_words("LEFT", "JOIN") or reader.is_words("LEFT", "OUTER", "JOIN"):
        return True
    if reader.next.word in OTHER_JOINS and (
        reader.next.word == "LATERAL" or reader.peek().word in ("JOIN", "OUTER")
    ):
        reader.fail(f"There is no {reader.next.word} JOIN.", OTHER_JOINS[reader.next.word])
    return reader.is_words("JOIN") or reader.is_words("INNER", "JOIN")


def read_join(
    reader: Reader, name: str, token: SqlToken, left: JoinedSource, names: Names
) -> tuple[Join | AsOf, dict[str, str]]:
    """Read ``[LEFT] JOIN source ... ON ...``: the derived rows, and the prefix of columns by the word before a dot."""
    outer = reader.next
    is_left = reader.accept("LEFT")
    reader.accept("OUTER")
    reader.accept("INNER")
    reader.expect("JOIN", hint="write JOIN.")
    right = read_joined_source(reader, names)
    timed = reader.accept("FOR", "SYSTEM_TIME", "AS", "OF")
    if timed:
        read_time_of(reader, left)
        right = JoinedSource(right.declared, read_alias(reader) or right.alias)
    if is_left != timed:
        reader.fail(
            "A LEFT JOIN has no FOR SYSTEM_TIME AS OF." if is_left else "A join as of a time is a LEFT JOIN.",
            OTHER_JOINS["LEFT" if is_left else "ASOF"],
            outer,
        )
    if left.alias == right.alias:
        reader.fail(
            f"Both sides are called {left.alias!r}.", "name them: FROM orders AS a JOIN orders AS b.", outer
        )
    condition = Condition(left, right)
    with reader.within("ON"):
        reader.expect("ON", hint="write ON left.key = right.key.")
        read_condition(reader, condition)
        made = (
            build_as_of(reader, name, token, condition, outer)
            if timed
            else build_join(reader, name, token, condition, outer)
        )
    if begins_join(reader):
        reader.fail(
            "There is another JOIN.", "a join is of two sources; derive the rows of each pair by themselves."
        )
    sides = ("left_", "right_") if left.name == right.name else (f"{left.name}_", f"{right.name}_")
    return made, {left.alias: sides[0], right.alias: sides[1]}


def build_join(reader: Reader, name: str, token: SqlToken, condition: Condition, at: SqlToken) -> Join:
    """Make the derived rows of an interval join, or of a window join."""
    require_keys(reader, condition, at)
    if condition.same is None and len(condition.bounds) < 2:
        reader.fail("The join has no bounds in time.", BOUNDED, at)
    if condition.same is not None and condition.bounds:
        reader.fail("The join has a window and bounds in time.", "delete one of them.", at)
    more: dict[str, Any] = {"same": condition.same} if condition.same else dict(condition.bounds)
    if condition.null_safe:
        more["null_safe"] = condition.null_safe
    left, right = condition.left.name, condition.right.name
    return Join(name, left, right, condition.on, origin=reader.origin(token), **more)


def build_as_of(reader: Reader, name: str, token: SqlToken, condition: Condition, at: SqlToken) -> AsOf:
    """Make the derived rows of a join with the version that was valid."""
    require_keys(reader, condition, at)
    if condition.same is not None or condition.bounds:
        reader.fail(
            "A join as of a time has other bounds too.",
            "say how old a version may be: WITH (at_most = '7 days').",
            at,
        )
    more: dict[str, Any] = {"null_safe": condition.null_safe} if condition.null_safe else {}
    left, right = condition.left.name, condition.right.name
    return AsOf(name, left, right, condition.on, origin=reader.origin(token), **more)


def require_keys(reader: Reader, condition: Condition, at: SqlToken) -> None:
    """Refuse a join without equal keys."""
    if not condition.on:
        reader.fail(
            "The join has no keys.", f"write {condition.left.alias}.key = {condition.right.alias}.key.", at
        )
