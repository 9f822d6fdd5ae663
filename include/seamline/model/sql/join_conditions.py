"""What ``ON`` says of two rows: keys that are equal, and how near they are in time."""

from __future__ import annotations

from dataclasses import dataclass, field

from seamline.model.definition.joins import Open
from seamline.model.definition.windows import Tumbling
from seamline.model.sql.durations import read_interval
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import DeclaredSource
from seamline.model.sql.slices import unquote

BOUNDED = (
    "bound the right row's time by the left one's: AND right.at BETWEEN left.at - INTERVAL '5 minutes' "
    "AND left.at + INTERVAL '1 hour'."
)
UP = {">=": False, ">": True}
"""Comparisons with the lower bound of a time, and whether the bound itself is out."""
DOWN = {"<=": False, "<": True}
"""Comparisons with the upper one."""


@dataclass(frozen=True)
class JoinedSource:
    """One side of a join."""

    declared: DeclaredSource
    """The source."""
    alias: str
    """What stands before the dot."""

    @property
    def name(self) -> str:
        """The source's name."""
        return self.declared.source.name

    @property
    def time(self) -> str:
        """The column of event time."""
        return self.declared.source.event_time


@dataclass
class Condition:
    """What ``ON`` says."""

    left: JoinedSource
    """The left side."""
    right: JoinedSource
    """The right side."""
    on: dict[str, str] = field(default_factory=dict)
    """The right column that each left one equals."""
    null_safe: list[str] = field(default_factory=list)
    """Left columns of which NULL equals NULL."""
    bounds: dict[str, str | Open] = field(default_factory=dict)
    """How far the right row may be ``before`` the left one, and ``after`` it."""
    same: Tumbling | None = None
    """The window in which both are, if that is said."""


def read_time_of(reader: Reader, side: JoinedSource) -> None:
    """Read a side's event time, qualified."""
    token, found = reader.next, read_qualified_column(reader)
    if found != (side.alias, side.time):
        reader.fail(
            f"{'.'.join(filter(None, found))} is not the event time of {side.alias}.",
            f"write {side.alias}.{side.time}.",
            token,
        )


def read_qualified_column(reader: Reader) -> tuple[str, str]:
    """Read ``alias.column``; the alias is empty where there is none."""
    first = unquote(reader.name("a column"))
    if not reader.accept_symbol("."):
        return "", first
    return first, unquote(reader.name("a column"))


def read_condition(reader: Reader, condition: Condition) -> None:
    """Read comparisons with AND between."""
    read_comparison(reader, condition)
    while reader.accept("AND"):
        read_comparison(reader, condition)
    if reader.is_words("OR"):
        reader.fail("A join has no OR.", "derive the rows of each condition by themselves.")


def read_comparison(reader: Reader, condition: Condition) -> None:
    """Read one comparison: equal keys, one window, or a bound of the right row's time."""
    if reader.is_words("TUMBLE"):
        return read_same_window(reader, condition)
    token, found = reader.next, read_qualified_column(reader)
    symbol = reader.next.symbol
    left, right = condition.left, condition.right
    if reader.is_words("BETWEEN") or symbol in UP or symbol in DOWN:
        if found != (right.alias, right.time):
            told = ".".join(filter(None, found))
            reader.fail(f"{told} is not the event time of the right side.", BOUNDED, token)
        return read_bounds(reader, condition)
    if symbol not in ("=", "<=>"):
        reader.fail(f"{reader.next.shown} is no comparison of a join.", "write left.key = right.key, or <=>.")
    reader.take()
    other = read_qualified_column(reader)
    pair = (found, other) if found[0] == left.alias else (other, found)
    if (pair[0][0], pair[1][0]) != (left.alias, right.alias):
        reader.fail(
            "The comparison is not of a left column with a right one.",
            f"write {left.alias}.key = {right.alias}.key.",
            token,
        )
    if pair[0][1] in condition.on:
        reader.fail(f"{pair[0][1]!r} is compared twice.", "delete one of the comparisons.", token)
    condition.on[pair[0][1]] = pair[1][1]
    if symbol == "<=>":
        condition.null_safe.append(pair[0][1])


def read_bounds(reader: Reader, condition: Condition) -> None:
    """Read ``BETWEEN left.at - INTERVAL ... AND left.at + INTERVAL ...``, or one comparison."""
    if reader.accept("BETWEEN"):
        read_bound(reader, condition, "before", is_open=False)
        reader.expect("AND", hint=BOUNDED)
        return read_bound(reader, condition, "after", is_open=False)
    symbol = reader.take().symbol
    read_bound(reader, condition, "before" if symbol in UP else "after", is_open={**UP, **DOWN}[symbol])


def read_bound(reader: Reader, condition: Condition, name: str, *, is_open: bool) -> None:
    """Read ``left.at [- INTERVAL ...]``."""
    token = reader.next
    read_time_of(reader, condition.left)
    sign = reader.next.symbol if reader.next.symbol in ("-", "+") else ""
    if sign and sign != ("-" if name == "before" else "+"):
        reader.fail(f"A bound has {sign} before its length.", BOUNDED)
    length = "0 seconds"
    if sign:
        reader.take()
        length = read_interval(reader)
    if name in condition.bounds:
        reader.fail("The time is bounded twice on one side.", "delete one of the bounds.", token)
    condition.bounds[name] = Open(length) if is_open else length


def read_same_window(reader: Reader, condition: Condition) -> None:
    """Read ``TUMBLE(left.at, INTERVAL ...) = TUMBLE(right.at, INTERVAL ...)``."""
    token = reader.next
    first = read_window_of(reader, condition.left)
    reader.expect_symbol(
        "=", "write TUMBLE(left.at, INTERVAL '1 hour') = TUMBLE(right.at, INTERVAL '1 hour')."
    )
    second = read_window_of(reader, condition.right)
    if first != second:
        reader.fail("The two windows are not of one size.", "write the same for both.", token)
    condition.same = first


def read_window_of(reader: Reader, side: JoinedSource) -> Tumbling:
    """Read ``TUMBLE(side.at, INTERVAL ...)``."""
    reader.expect("TUMBLE", hint="write TUMBLE(left.at, INTERVAL '1 hour') on both sides.")
    reader.expect_symbol("(", "write TUMBLE(left.at, INTERVAL '1 hour').")
    read_time_of(reader, side)
    reader.expect_symbol(",", "write TUMBLE(left.at, INTERVAL '1 hour').")
    found = Tumbling(read_interval(reader))
    reader.expect_symbol(")", "close the bracket.")
    return found
