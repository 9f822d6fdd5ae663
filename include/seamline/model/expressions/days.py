"""Functions of days and instants, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from seamline.model.expressions.calls import compile_strict_call, require_argument_type
from seamline.model.expressions.casts import compile_cast, utc_timestamp_sql
from seamline.model.expressions.spans import (
    DAY,
    MICROSECONDS,
    MOST_DAYS,
    MOST_MICROSECONDS,
    MOST_MONTHS,
    Span,
    require_unit,
    shift_by_months_sql,
    shift_instant_sql,
)
from seamline.model.expressions.terms import (
    INTEGERS,
    Guard,
    Term,
    any_nullable,
    build_expression_error,
    columns_of,
    left_first,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import BIGINT, DATE, INT, TIMESTAMP

Function = Callable[[Sequence[Term]], Term]
FIELDS = {
    "year": "year({})",
    "quarter": "quarter({})",
    "month": "month({})",
    "day": "day({})",
    "dayofmonth": "day({})",
    "dayofyear": "dayofyear({})",
    "weekofyear": "week({})",
    "dayofweek": "dayofweek({}) + 1",
    "weekday": "isodow({}) - 1",
    "hour": "hour({})",
    "minute": "minute({})",
    "second": "second({})",
}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"


def field_of(name: str) -> Function:
    """Make year, hour and their kin: an INT read from a day or an instant, in UTC."""

    def make(arguments: Sequence[Term]) -> Term:
        moment = require_argument_type(arguments[0], TIMESTAMP, name)
        return compile_strict_call(
            name, INT, arguments, f"CAST({FIELDS[name].format(utc_timestamp_sql(moment))} AS INTEGER)"
        )

    return make


def date_trunc(arguments: Sequence[Term]) -> Term:
    """Cut an instant down to a unit of UTC; weeks start on Monday."""
    unit = arguments[0].literal
    if not isinstance(unit, str) or unit.lower() not in UNITS:
        raise build_expression_error(
            f"date_trunc does not support {arguments[0].spark}.", f"use one of {', '.join(UNITS)}."
        )
    moment = require_argument_type(arguments[1], TIMESTAMP, "date_trunc")
    cut = f"make_timestamptz(epoch_us(date_trunc('{unit.lower()}', {utc_timestamp_sql(moment)})))"
    term = replace(moment, literal=None, duckdb=cut)
    return replace(term, spark=f"date_trunc('{unit.lower()}', {arguments[1].spark})")


def to_date(arguments: Sequence[Term]) -> Term:
    """Return the UTC day of an instant."""
    return compile_cast(require_argument_type(arguments[0], TIMESTAMP, "to_date"), DATE)


def require_day(term: Term, function: str) -> Term:
    """Require a day; an instant's is that in UTC."""
    if term.type == DATE:
        return refuse_null_constant(term)
    return compile_cast(require_argument_type(term, TIMESTAMP, function), DATE)


def require_count(term: Term, function: str, most: int, way_out: str) -> Term:
    """Require a whole number so small that no result leaves what both engines can hold."""
    if refuse_null_constant(term).type not in INTEGERS:
        raise build_expression_error(f"{function} takes INT; {term.spark} is {term.type}.", "cast it to INT.")
    if max(map(abs, term.range)) > most:
        raise build_expression_error(
            f"{function} takes at most {most} either way; {term.spark} may be more.", way_out
        )
    return require_infallible_term(term, function)


def shift_days(moment: Term, days: Term, sign: str, spark: str) -> Term:
    """Compile date_add and date_sub: a day beyond the years 1 to 9999 is one that nobody can read back."""
    day = require_day(moment, "date_add")
    if refuse_null_constant(days).type != INT:
        raise build_expression_error(
            f"{days.spark} is {days.type}; days are counted in INT.", "cast it to INT, or add an INTERVAL."
        )
    shifted = f"({day.duckdb} {sign} {days.duckdb})"
    term = Term(DATE, spark, shifted, any_nullable(day, days), columns_of(day, days), left_first(day, days))
    if max(map(abs, days.range)) <= MOST_DAYS:
        return term
    number = f"(CAST({day.duckdb} - DATE '1970-01-01' AS BIGINT) {sign} CAST({days.duckdb} AS BIGINT))"
    low, high = (f"({each} - DATE '1970-01-01')" for each in (FIRST_DAY, LAST_DAY))
    outside = f"({number} NOT BETWEEN {low} AND {high})"
    guard = Guard(outside, f"{spark} is not within the years 1 to 9999")
    return replace(
        term,
        duckdb=f"(CASE WHEN {outside} THEN NULL ELSE {shifted} END)",
        guards=(*term.guards, guard),
    )


def define_day_shift(name: str, sign: str) -> Function:
    """Make date_add and date_sub."""

    def make(arguments: Sequence[Term]) -> Term:
        moment, days = arguments
        return shift_days(moment, days, sign, f"{name}({moment.spark}, {days.spark})")

    return make


def compile_day_arithmetic(operator: str, left: Term, right: Term) -> Term:
    """Compile day + 7 and day - 7; other operators have no meaning for days."""
    spark = f"({left.spark} {operator} {right.spark})"
    if operator in ("+", "-") and left.type == DATE and right.type in INTEGERS:
        return shift_days(left, right, operator, spark)
    if operator == "+" and right.type == DATE and left.type in INTEGERS:
        return shift_days(right, left, "+", spark)
    raise build_expression_error(
        f"{spark} is not arithmetic of days.", "use datediff(later, earlier), timestampdiff, or an INTERVAL."
    )


def count_days(arguments: Sequence[Term]) -> Term:
    """Compile datediff(end, start): whole days between two days."""
    end, start = (require_day(argument, "datediff") for argument in arguments)
    return compile_strict_call(
        "datediff", INT, arguments, f"CAST(({end.duckdb} - {start.duckdb}) AS INTEGER)"
    )


def add_months(arguments: Sequence[Term]) -> Term:
    """Compile add_months: a day that the month does not have is its last."""
    day = require_day(arguments[0], "add_months")
    months = require_count(arguments[1], "add_months", MOST_MONTHS, "bound it, such as n % 1200.")
    if months.type != INT:
        raise build_expression_error(f"add_months takes INT; {months.spark} is BIGINT.", "cast it to INT.")
    return compile_strict_call(
        "add_months", DATE, arguments, shift_by_months_sql(day, f"to_months({months.duckdb})")
    )


def last_day(arguments: Sequence[Term]) -> Term:
    """Compile last_day of a month."""
    day = require_day(arguments[0], "last_day")
    return compile_strict_call("last_day", DATE, arguments, f"last_day({day.duckdb})")


def add_units(unit: str, count: Term, moment: Term) -> Term:
    """Compile timestampadd(MINUTE, n, t)."""
    size = MICROSECONDS[require_unit(unit, MICROSECONDS, "timestampadd")]
    start = require_argument_type(moment, TIMESTAMP, "timestampadd")
    require_infallible_term(moment, "timestampadd")
    way_out = "bound it, such as n % 1000, or count in a smaller unit."
    number = require_count(count, "timestampadd", MOST_MICROSECONDS // size, way_out)
    shifted = shift_instant_sql(start, f"CAST({number.duckdb} AS BIGINT) * {size}")
    spark = f"timestampadd({unit.upper()}, {count.spark}, {moment.spark})"
    return replace(compile_strict_call("timestampadd", TIMESTAMP, [count, moment], shifted), spark=spark)


def count_units(unit: str, start: Term, end: Term) -> Term:
    """Compile timestampdiff(MINUTE, start, end): whole units between two instants, towards zero."""
    size = MICROSECONDS[require_unit(unit, MICROSECONDS, "timestampdiff")]
    first, last = (require_argument_type(each, TIMESTAMP, "timestampdiff") for each in (start, end))
    apart = f"(CAST(epoch_us({last.duckdb}) AS HUGEINT) - epoch_us({first.duckdb})) // {size}"
    made = compile_strict_call("timestampdiff", BIGINT, [start, end], f"CAST({apart} AS BIGINT)")
    return replace(made, spark=f"timestampdiff({unit.upper()}, {start.spark}, {end.spark})")


def shift_by_span(moment: Term, span: Span, sign: int, spark: str) -> Term:
    """Compile t + INTERVAL 5 MINUTES: a day stays one where whole days or months are added."""
    if refuse_null_constant(moment).type not in (DATE, TIMESTAMP):
        raise build_expression_error(
            f"{moment.spark} is {moment.type}; an INTERVAL is added to a DATE or a TIMESTAMP.",
            "declare the column DATE or TIMESTAMP in the schema.",
        )
    base = replace(moment, spark=spark, literal=None, bounds=None)
    if moment.type == DATE and span.whole_days:
        return replace(base, duckdb=f"({moment.duckdb} + ({sign * span.microseconds // DAY}))")
    if span.months and moment.type == DATE:
        return replace(base, duckdb=shift_by_months_sql(moment, f"to_months({sign * span.months})"))
    start = require_argument_type(moment, TIMESTAMP, "INTERVAL")
    made = shift_instant_sql(start, str(sign * span.microseconds))
    if span.months:
        months = f"{utc_timestamp_sql(start)} + to_months({sign * span.months})"
        made = f"TRY(make_timestamptz(epoch_us({months})))"
    return replace(base, type=TIMESTAMP, duckdb=made)
