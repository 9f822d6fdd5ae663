"""Intervals, as they are written: whole months, or days and what is shorter."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from seamline.model.errors import ExpressionError
from seamline.model.expressions.terms import Term, build_expression_error

SECOND = 1_000_000
DAY = 86_400 * SECOND
MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": 3600 * SECOND,
    "day": DAY,
    "week": 7 * DAY,
}
MONTHS = {"month": 1, "year": 12}
MOST_MONTHS = 120_000
MOST_DAYS = 3_652_500
MOST_MICROSECONDS = MOST_DAYS * DAY
"""Ten thousand years: what is added to a year from 1 to 9999 both engines can hold."""
NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,6})?", re.ASCII)
WAY_OUT = "write INTERVAL 5 MINUTES, INTERVAL 1 DAY 2 HOURS or INTERVAL 3 MONTHS."
OF_COLUMNS = (
    f"{WAY_OUT.removesuffix('.')}; with a column's number date_add(d, n) or timestampadd(MINUTE, n, t)."
)


@dataclass(frozen=True)
class Span:
    """A length of time; either months or microseconds are 0."""

    months: int
    """Months of it."""
    microseconds: int
    """Microseconds of it."""
    whole_days: bool
    """Whether it is written in days and weeks only: added to a day it gives a day."""

    @property
    def spark(self) -> str:
        """Spell it for Spark, in one way whatever the units were."""
        if self.months:
            return f"INTERVAL '{self.months}' MONTH"
        if self.whole_days:
            return f"INTERVAL '{self.microseconds // DAY}' DAY"
        return f"INTERVAL '{Decimal(self.microseconds).scaleb(-6):f}' SECOND"


def is_span(node: exp.Expr) -> bool:
    """Whether a node is an interval, or some of them added up."""
    if isinstance(node, (exp.Paren, exp.Neg)):
        return is_span(node.this)
    if isinstance(node, (exp.Add, exp.Sub)):
        return is_span(node.this) and is_span(node.expression)
    return isinstance(node, exp.Interval)


def read_span(node: exp.Expr) -> Span:
    """Read an interval; ExpressionError for one that mixes months with what is shorter."""
    months, microseconds, units = add_up(node, 1)
    if bool(units & set(MONTHS)) == bool(units & set(MICROSECONDS)):
        raise refuse_span(node, "mixes months and days")
    if abs(months) > MOST_MONTHS or abs(microseconds) > MOST_MICROSECONDS:
        raise refuse_span(node, "is longer than 10,000 years")
    if not months and units & set(MONTHS):
        raise refuse_span(node, "is of no length")
    return Span(months, microseconds, whole_days=units <= {"day", "week"})


def refuse_span(node: exp.Expr, what: str, way_out: str = WAY_OUT) -> ExpressionError:
    """Make the error of an interval."""
    return build_expression_error(f"{node.sql(dialect='spark')} {what}.", way_out)


def add_up(node: exp.Expr, sign: int) -> tuple[int, int, set[str]]:
    """Return months, microseconds, and the units that occur."""
    if isinstance(node, exp.Paren):
        return add_up(node.this, sign)
    if isinstance(node, exp.Neg):
        return add_up(node.this, -sign)
    if isinstance(node, (exp.Add, exp.Sub)):
        left = add_up(node.this, sign)
        right = add_up(node.expression, sign if isinstance(node, exp.Add) else -sign)
        return left[0] + right[0], left[1] + right[1], left[2] | right[2]
    return read_length(node, sign)


def read_length(node: exp.Expr, sign: int) -> tuple[int, int, set[str]]:
    """Read one number with its unit."""
    unit = node.args.get("unit")
    name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
    text = node.this.name.strip() if isinstance(node.this, exp.Literal) else ""
    number = NUMBER.fullmatch(text)
    if number is None or name not in {**MONTHS, **MICROSECONDS} or (number[1] and name != "second"):
        raise refuse_span(
            node, "is not one number with a unit, written out; only seconds take a fraction", OF_COLUMNS
        )
    length = int(sign * Decimal(text) * {**MONTHS, **MICROSECONDS}[name])
    return (length, 0, {name}) if name in MONTHS else (0, length, {name})


def require_unit(unit: str, units: Container[str], function: str) -> str:
    """Require a unit that is of one length."""
    if unit.lower() not in units:
        raise build_expression_error(
            f"{function} does not support {unit}.",
            f"use one of {', '.join(MICROSECONDS).upper()}; for months add_months, or year(t) * 12 + month(t).",
        )
    return unit.lower()


def shift_instant_sql(moment: Term, microseconds: str) -> str:
    """Move an instant for DuckDB; NULL beyond what it can hold, 280,000 years away."""
    return f"TRY(make_timestamptz(epoch_us({moment.duckdb}) + ({microseconds})))"


def shift_by_months_sql(day: Term, months: str) -> str:
    """Move a day by months for DuckDB."""
    return f"TRY(CAST({day.duckdb} + {months} AS DATE))"
