"""Numbers: what may overflow or divide by zero in Spark carries a guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seamline.model.expressions.coercion import coerce_term, digits_of, require_decimal_width
from seamline.model.expressions.terms import (
    INTEGERS,
    RANGES,
    Guard,
    Term,
    any_nullable,
    build_expression_error,
    columns_of,
    left_first,
    refuse_null_constant,
    require_infallible_term,
    restrict_guards,
)
from seamline.model.types.schema import BIGINT, DOUBLE, INT, SqlType, TypeKind, build_decimal_type

Bounds = Callable[[int, int], tuple[int, int]]
WIDER = {INT: "BIGINT", BIGINT: "HUGEINT"}
LONG = 19
"""Digits of a DECIMAL from which DuckDB takes the wider of its integers for it."""


def compile_arithmetic(operator: str, left: Term, right: Term) -> Term:
    """Compile ``left operator right`` for + - * / % div."""
    for side in (left, right):
        if side.type is not None and not side.numeric:
            raise build_expression_error(
                f"{side.spark} is {side.type}, not a number.", format_cast_hint(side.type)
            )
        refuse_null_constant(side)
    spark = f"({left.spark} {operator} {right.spark})"
    if operator in ("/", "%", "div"):
        return compile_division(operator, left, right, spark)
    if DOUBLE in (left.type, right.type):
        return compile_safe_operator(operator, coerce_term(left, DOUBLE), coerce_term(right, DOUBLE), spark)
    if left.type in INTEGERS and right.type in INTEGERS:
        return compile_integer_arithmetic(operator, left, right, spark)
    return compile_decimal_arithmetic(operator, left, right, spark)


def format_cast_hint(type_: SqlType) -> str:
    """Say what to do with what is not a number."""
    if type_.kind in (TypeKind.DATE, TypeKind.TIMESTAMP):
        return "add an INTERVAL, or take datediff or timestampdiff."
    return "cast it to INT, BIGINT or DOUBLE."


def compile_safe_operator(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile an operator that cannot fail."""
    return Term(
        left.type,
        spark,
        f"({left.duckdb} {operator} {right.duckdb})",
        nullable=any_nullable(left, right),
        columns=columns_of(left, right),
        guards=left_first(left, right),
    )


def compile_integer_arithmetic(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile + - * of integers: computed one size wider, then brought back."""
    type_ = BIGINT if BIGINT in (left.type, right.type) else INT
    wide = WIDER[type_]
    value = f"(CAST({left.duckdb} AS {wide}) {operator} CAST({right.duckdb} AS {wide}))"
    base = replace(compile_safe_operator(operator, left, right, spark), type=type_)
    return narrow_integer(base, value, find_result_bounds(operator, left, right))


def find_result_bounds(operator: str, left: Term, right: Term) -> tuple[int, int]:
    """Return the least and greatest result."""
    (a, b), (c, d) = left.range, right.range
    if operator == "+":
        return a + c, b + d
    if operator == "-":
        return a - d, b - c
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)


def narrow_integer(base: Term, wide: str, bounds: tuple[int, int]) -> Term:
    """Bring a wide integer back to the type of ``base``, with a guard if it may not fit."""
    assert base.type is not None
    low, high = RANGES[base.type]
    if low <= bounds[0] and bounds[1] <= high:
        return replace(base, duckdb=f"CAST({wide} AS {base.type.duckdb})", bounds=bounds)
    guard = Guard(f"({wide} NOT BETWEEN {low} AND {high})", f"{base.spark} overflows {base.type}")
    return refuse_failing_constant(
        replace(base, duckdb=f"TRY_CAST({wide} AS {base.type.duckdb})", guards=(*base.guards, guard))
    )


def refuse_failing_constant(term: Term) -> Term:
    """Refuse a constant that would fail for each record."""
    if term.guards and not term.columns:
        raise build_expression_error(f"{term.guards[-1].message} for every record.", "correct the constant.")
    return term


def compile_decimal_arithmetic(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile + - * of DECIMALs where the exact result fits 38 digits."""
    one, two = digits_of(left), digits_of(right)
    if operator == "*":
        type_ = require_decimal_width(one.precision + two.precision + 1, one.scale + two.scale)
        # DuckDB keeps the product of two DECIMALs of at most 18 digits to 18, and fails beyond.
        short = max(one.precision, two.precision) < LONG < type_.precision
        room = build_decimal_type(LONG, one.scale) if short else one
        sides = (coerce_term(coerce_term(left, one), room), coerce_term(right, two))
    else:
        scale = max(one.scale, two.scale)
        type_ = require_decimal_width(
            max(one.precision - one.scale, two.precision - two.scale) + scale + 1, scale
        )
        sides = (coerce_term(left, type_), coerce_term(right, type_))
    result = compile_safe_operator(operator, *sides, spark)
    return replace(result, type=type_, duckdb=f"CAST({result.duckdb} AS {type_.duckdb})")


def compile_division(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile / % div; Spark looks at the right side first and skips the left if that is NULL."""
    zero = f"({right.duckdb} = 0 AND {left.duckdb} IS NOT NULL)"
    left_guards = (
        restrict_guards(f"{right.duckdb} IS NOT NULL", left.guards) if right.nullable else left.guards
    )
    guards = (*right.guards, *left_guards)
    if right.literal is None or not right.literal:
        guards = (*guards, Guard(zero, f"{spark} divides by zero"))
    base = Term(None, spark, "", any_nullable(left, right), columns_of(left, right), guards)
    if operator == "div":
        return refuse_failing_constant(compile_integer_division(base, left, right))
    type_, duckdb = divide_sql(operator, left, right)
    most = max(map(abs, right.range)) - 1 if type_ in INTEGERS else 0
    bounds = (-most, most) if most > 0 else None
    return refuse_failing_constant(replace(base, type=type_, duckdb=duckdb, bounds=bounds))


def divide_sql(operator: str, left: Term, right: Term) -> tuple[SqlType, str]:
    """Return type and DuckDB text of / and %."""
    integers = left.type in INTEGERS and right.type in INTEGERS
    if DOUBLE in (left.type, right.type) or (operator == "/" and integers):
        one, two = coerce_term(left, DOUBLE).duckdb, coerce_term(right, DOUBLE).duckdb
        return DOUBLE, f"({one} {operator} nullif({two}, 0))"
    if not integers:
        raise build_expression_error(
            f"{left.spark} {operator} {right.spark} rounds a DECIMAL.",
            "use a DOUBLE: CAST(x AS DOUBLE), or 2.5D for 2.5.",
        )
    type_ = BIGINT if BIGINT in (left.type, right.type) else INT
    wide = WIDER[type_]
    value = f"(CAST({left.duckdb} AS {wide}) % nullif(CAST({right.duckdb} AS {wide}), 0))"
    return type_, f"CAST({value} AS {type_.duckdb})"


def compile_integer_division(base: Term, left: Term, right: Term) -> Term:
    """Compile div, which is BIGINT and overflows only for the least BIGINT by -1."""
    if left.type not in INTEGERS or right.type not in INTEGERS:
        raise build_expression_error(
            f"The operands of {base.spark} are not integers.", "use / for a DOUBLE result, or cast to BIGINT."
        )
    value = f"(CAST({left.duckdb} AS HUGEINT) // nullif(CAST({right.duckdb} AS HUGEINT), 0))"
    greatest = max(map(abs, left.range))
    fits = left.range[0] > RANGES[BIGINT][0] or right.range[0] >= 0
    bounds = (-greatest, min(greatest, RANGES[BIGINT][1]) if fits else greatest)
    return narrow_integer(replace(base, type=BIGINT), value, bounds)


def compile_negation(term: Term) -> Term:
    """Compile a minus sign."""
    return compile_sign_function(term, f"(- {term.spark})", "-", lambda low, high: (-high, -low))


def compile_abs(term: Term) -> Term:
    """Compile abs."""
    return compile_sign_function(
        term, f"abs({term.spark})", "abs", lambda low, high: (0, max(abs(low), abs(high)))
    )


def compile_sign_function(term: Term, spark: str, function: str, bounds: Bounds) -> Term:
    """Compile a function of one number that keeps its type; the least integer overflows."""
    if not term.numeric:
        raise build_expression_error(
            f"{term.spark} is {term.type or 'NULL'}, not a number.", "cast it to a number first."
        )
    base = replace(term, spark=spark, duckdb=f"{function}({term.duckdb})", literal=None, bounds=None)
    if term.type not in INTEGERS:
        return base
    assert term.type is not None
    return refuse_failing_constant(
        narrow_integer(base, f"{function}(CAST({term.duckdb} AS {WIDER[term.type]}))", bounds(*term.range))
    )


def compile_try_arithmetic(operator: str, name: str, left: Term, right: Term) -> Term:
    """Compile try_add and its kin: NULL where the operator would fail."""
    sides = require_infallible_term(left, name), require_infallible_term(right, name)
    spark = f"{name}({left.spark}, {right.spark})"
    return replace(compile_arithmetic(operator, *sides), spark=spark, guards=(), nullable=True, bounds=None)
