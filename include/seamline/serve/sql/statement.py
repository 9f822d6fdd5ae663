"""A question in SQL: one statement that reads, the views that it names, and the windows that it asks of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from seamline.model.errors import BadRange
from seamline.model.time.intervals import parse_moment

DIALECT = "duckdb"
TICK = timedelta(microseconds=1)
BOUNDED = "window_start"
HINT = "write a SELECT over PIPELINE.VIEW, in DuckDB's SQL."
WRITES = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Set, exp.Attach, exp.Detach, exp.Pragma, exp.Copy)
INSIDE = re.compile(
    r"(duckdb|pragma)_\w*|current_setting|getvariable|query|query_table|which_secret", re.IGNORECASE
)
"""Functions that show settings and paths of the server, or run a text that has not been read."""


@dataclass(frozen=True, order=True)
class NamedView:
    """A view as a statement names it."""

    pipeline: str
    """The schema of the table."""
    view: str
    """Its name."""

    def __str__(self) -> str:
        return f"{self.pipeline}.{self.view}"


@dataclass(frozen=True)
class AskedWindows:
    """The windows of which a statement needs rows; others change nothing of its answer."""

    start: datetime | None = None
    """Instant from which on windows start, inclusive; None for any."""
    end: datetime | None = None
    """Instant before which they start, exclusive; None for any."""

    def __or__(self, other: AskedWindows) -> AskedWindows:
        start = None if self.start is None or other.start is None else min(self.start, other.start)
        end = None if self.end is None or other.end is None else max(self.end, other.end)
        return AskedWindows(start, end)

    def __and__(self, other: AskedWindows) -> AskedWindows:
        starts = [each for each in (self.start, other.start) if each is not None]
        ends = [each for each in (self.end, other.end) if each is not None]
        return AskedWindows(max(starts, default=None), min(ends, default=None))


@dataclass(frozen=True)
class Statement:
    """A statement that was read."""

    text: str
    """As it was written."""
    views: Mapping[NamedView, AskedWindows]
    """The views that it names, in the order of their names."""


def parse_statement(text: str) -> Statement:
    """Read one SELECT; BadRange for anything else, and for a table that is not written PIPELINE.VIEW."""
    try:
        found = [each for each in sqlglot.parse(text, read=DIALECT) if each is not None]
    except (SqlglotError, RecursionError) as problem:
        raise BadRange(f"The SQL is wrong: {first_line(problem)}", hint=HINT) from None
    if len(found) != 1:
        raise BadRange(f"There are {len(found)} statements, not one.", hint=HINT)
    [tree] = found
    if not isinstance(tree, exp.Query) or any(tree.find(kind) for kind in WRITES):
        raise BadRange("Only a SELECT is possible: nothing is changed by SQL.", hint=HINT)
    for call in tree.find_all(exp.Anonymous):
        if INSIDE.fullmatch(call.name):
            raise BadRange(
                f"{call.name}() is not possible: it tells of the server, not of views.", hint="leave it out."
            )
    views: dict[NamedView, AskedWindows] = {}
    for table in tree.find_all(exp.Table):
        if (named := name_view(tree, table)) is not None:
            asked = find_windows(table)
            views[named] = views[named] | asked if named in views else asked
    if not views:
        raise BadRange("The SQL names no view.", hint=HINT)
    return Statement(text, dict(sorted(views.items())))


def first_line(problem: Exception) -> str:
    """Return the first line of what is wrong, without colours."""
    return str(problem).replace("\x1b[4m", "").replace("\x1b[0m", "").partition("\n")[0]


def name_view(tree: exp.Expr, table: exp.Table) -> NamedView | None:
    """Return the view that a table is; None for a part of the statement, or what a function gives."""
    if not isinstance(table.this, exp.Identifier):
        return None
    if table.db and not table.catalog:
        return NamedView(table.db, table.name)
    # DuckDB compares names without case.
    if not table.db and table.name.lower() in {each.alias.lower() for each in tree.find_all(exp.CTE)}:
        return None
    raise BadRange(
        f"{table.sql(DIALECT)} is not a view.", hint="name it PIPELINE.VIEW, as `seamline check` does."
    )


def find_windows(table: exp.Table) -> AskedWindows:
    """Find what the WHERE beside a table says of its windows' starts.

    A row that fails a condition of its own columns is in no answer, also where an outer join has put NULL in its place:
    NULL fails it as well. So such a row need not be read.
    """
    select = table.find_ancestor(exp.Select)
    where = select.args.get("where") if select else None
    if select is None or where is None or not is_plain_source(select, table):
        return AskedWindows()
    alone = len(list_sources(select)) == 1
    asked = AskedWindows()
    for condition in list_conditions(where.this):
        asked &= read_bounds(condition, table, alone=alone)
    return asked


def list_conditions(condition: exp.Expr) -> Iterator[exp.Expr]:
    """List the conditions that must all hold."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        for each in inner.flatten():
            yield from list_conditions(each)
    else:
        yield inner


def is_plain_source(select: exp.Select, table: exp.Table) -> bool:
    """Return whether a SELECT reads a table as it is, and what is left out of it has no influence on other rows."""
    alias = table.args.get("alias")
    if not any(each is table for each in list_sources(select)) or (alias and alias.columns):
        return False
    if table.args.get("sample") or table.args.get("pivots"):
        return False
    # The nearest row of an ASOF join would be another one, and a SEMI join shows no column of its right side.
    return all(
        join.method in ("", "NATURAL") and join.kind in ("", "INNER", "OUTER", "CROSS")
        for join in select.args.get("joins") or []
    )


def list_sources(select: exp.Select) -> list[exp.Expr]:
    """List what a SELECT reads from."""
    begin = select.args.get("from_")
    first = [begin.this] if begin else []
    return [*first, *(join.this for join in select.args.get("joins") or [])]


def names_table(column: exp.Column, table: exp.Table) -> bool:
    """Return whether a column says that it is of a table: two views may have one name, in different pipelines."""
    if column.table.lower() != table.alias_or_name.lower():
        return False
    return not column.db or (not table.alias and column.db.lower() == table.db.lower())


def read_bounds(condition: exp.Expr, table: exp.Table, *, alone: bool) -> AskedWindows:
    """Read what a condition says of the start of a table's windows; no bounds if nothing."""

    def is_start(side: exp.Expr) -> bool:
        if not isinstance(side, exp.Column) or side.name.lower() != BOUNDED:
            return False
        return names_table(side, table) if side.table else alone

    if isinstance(condition, exp.Between) and is_start(condition.this):
        low, high = (read_instant(condition.args[name]) for name in ("low", "high"))
        return AskedWindows(low, step_behind(high))
    if not isinstance(condition, exp.Binary):
        return AskedWindows()
    left, right = condition.left, condition.right
    kind: type[exp.Expr] = type(condition)
    if is_start(right):
        left, right, kind = right, left, MIRRORED.get(kind, kind)
    instant = read_instant(right) if is_start(left) else None
    after = step_behind(instant)
    bounds: Mapping[type[exp.Expr], AskedWindows] = {
        exp.EQ: AskedWindows(instant, after),
        exp.GTE: AskedWindows(start=instant),
        exp.GT: AskedWindows(start=instant),
        exp.LTE: AskedWindows(end=after),
        exp.LT: AskedWindows(end=instant),
    }
    return bounds.get(kind, AskedWindows())


MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def step_behind(instant: datetime | None) -> datetime | None:
    """Return the instant behind one; None for no bound, as behind the last one that there is."""
    return None if instant is None or instant > LAST - TICK else instant + TICK


def read_instant(value: exp.Expr) -> datetime | None:
    """Read an instant that is written out, in UTC unless it says otherwise; None for anything else."""
    inner, pattern = value.unnest(), INSTANT
    # A type with a precision rounds.
    while isinstance(inner, exp.Cast) and inner.to.this in TIMES and not inner.to.expressions:
        pattern = min(pattern, TIMES[inner.to.this], key=PATTERNS.index)
        inner = inner.this.unnest()
    if not isinstance(inner, exp.Literal) or not inner.is_string or not pattern.fullmatch(inner.name):
        return None
    try:
        return parse_moment(inner.name)
    except BadRange:
        return None


DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
LOCAL = re.compile(DAY.pattern + r"([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
INSTANT = re.compile(DAY.pattern + r"([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:\d\d)?)?)?", re.ASCII)
PATTERNS = (DAY, LOCAL, INSTANT)
"""What Python and DuckDB read alike, the narrowest first."""
TIMES = {
    exp.DataType.Type.DATE: DAY,
    # DuckDB passes over the zone of a text that becomes a TIMESTAMP.
    exp.DataType.Type.TIMESTAMP: LOCAL,
    exp.DataType.Type.TIMESTAMPNTZ: LOCAL,
    exp.DataType.Type.TIMESTAMPTZ: INSTANT,
}
"""What is read alike where a text becomes a value of a type."""
LAST = datetime.max.replace(tzinfo=UTC)
