"""Numbers: what may overflow or divide by zero in Spark carries a guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seamline.model.expressions.coercion import coerced, digits_of, fitting
from seamline.model.expressions.terms import (
    INTEGERS,
    RANGES,
    Guard,
    Term,
    any_nullable,
    columns_of,
    definite,
    left_first,
    only_if,
    refuse,
    unconditional,
)
from seamline.model.types.schema import BIGINT, DOUBLE, INT, Kind, SqlType, decimal

Bounds = Callable[[int, int], tuple[int, int]]
WIDER = {INT: "BIGINT", BIGINT: "HUGEINT"}
LONG = 19
"""Digits of a DECIMAL from which DuckDB takes the wider of its integers for it."""


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """Compile ``left operator right`` for + - * / % div."""
    for side in (left, right):
        if side.type is not None and not side.numeric:
            raise refuse(f"{side.spark} is {side.type}, not a number.", advice(side.type))
        definite(side)
    spark = f"({left.spark} {operator} {right.spark})"
    if operator in ("/", "%", "div"):
        return divided(operator, left, right, spark)
    if DOUBLE in (left.type, right.type):
        return binary(operator, coerced(left, DOUBLE), coerced(right, DOUBLE), spark)
    if left.type in INTEGERS and right.type in INTEGERS:
        return whole(operator, left, right, spark)
    return fixed(operator, left, right, spark)


def advice(type_: SqlType) -> str:
    """Say what to do with what is not a number."""
    if type_.kind in (Kind.DATE, Kind.TIMESTAMP):
        return "compare with a TIMESTAMP literal, or cut it with date_trunc; intervals are not taken."
    return "cast it to INT, BIGINT or DOUBLE."


def binary(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile an operator that cannot fail."""
    return Term(
        left.type,
        spark,
        f"({left.duckdb} {operator} {right.duckdb})",
        nullable=any_nullable(left, right),
        columns=columns_of(left, right),
        guards=left_first(left, right),
    )


def whole(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile + - * of integers: computed one size wider, then brought back."""
    type_ = BIGINT if BIGINT in (left.type, right.type) else INT
    wide = WIDER[type_]
    value = f"(CAST({left.duckdb} AS {wide}) {operator} CAST({right.duckdb} AS {wide}))"
    base = replace(binary(operator, left, right, spark), type=type_)
    return narrowed(base, value, reach(operator, left, right))


def reach(operator: str, left: Term, right: Term) -> tuple[int, int]:
    """Return the least and greatest result."""
    (a, b), (c, d) = left.range, right.range
    if operator == "+":
        return a + c, b + d
    if operator == "-":
        return a - d, b - c
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)


def narrowed(base: Term, wide: str, bounds: tuple[int, int]) -> Term:
    """Bring a wide integer back to the type of ``base``, with a guard if it may not fit."""
    assert base.type is not None
    low, high = RANGES[base.type]
    if low <= bounds[0] and bounds[1] <= high:
        return replace(base, duckdb=f"CAST({wide} AS {base.type.duckdb})", bounds=bounds)
    guard = Guard(f"({wide} NOT BETWEEN {low} AND {high})", f"{base.spark} overflows {base.type}")
    return once(replace(base, duckdb=f"TRY_CAST({wide} AS {base.type.duckdb})", guards=(*base.guards, guard)))


def once(term: Term) -> Term:
    """Refuse a constant that would fail for each record."""
    if term.guards and not term.columns:
        raise refuse(f"{term.guards[-1].message} for every record.", "correct the constant.")
    return term


def fixed(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile + - * of DECIMALs where the exact result fits 38 digits."""
    one, two = digits_of(left), digits_of(right)
    if operator == "*":
        type_ = fitting(one.precision + two.precision + 1, one.scale + two.scale)
        # DuckDB keeps the product of two DECIMALs of at most 18 digits to 18, and fails beyond.
        short = max(one.precision, two.precision) < LONG < type_.precision
        room = decimal(LONG, one.scale) if short else one
        sides = (coerced(coerced(left, one), room), coerced(right, two))
    else:
        scale = max(one.scale, two.scale)
        type_ = fitting(max(one.precision - one.scale, two.precision - two.scale) + scale + 1, scale)
        sides = (coerced(left, type_), coerced(right, type_))
    result = binary(operator, *sides, spark)
    return replace(result, type=type_, duckdb=f"CAST({result.duckdb} AS {type_.duckdb})")


def divided(operator: str, left: Term, right: Term, spark: str) -> Term:
    """Compile / % div; Spark looks at the right side first and skips the left if that is NULL."""
    zero = f"({right.duckdb} = 0 AND {left.duckdb} IS NOT NULL)"
    left_guards = only_if(f"{right.duckdb} IS NOT NULL", left.guards) if right.nullable else left.guards
    guards = (*right.guards, *left_guards)
    if right.literal is None or not right.literal:
        guards = (*guards, Guard(zero, f"{spark} divides by zero"))
    base = Term(None, spark, "", any_nullable(left, right), columns_of(left, right), guards)
    if operator == "div":
        return once(quotient(base, left, right))
    type_, duckdb = ratio(operator, left, right)
    return once(replace(base, type=type_, duckdb=duckdb))


def ratio(operator: str, left: Term, right: Term) -> tuple[SqlType, str]:
    """Return type and DuckDB text of / and %."""
    integers = left.type in INTEGERS and right.type in INTEGERS
    if DOUBLE in (left.type, right.type) or (operator == "/" and integers):
        one, two = coerced(left, DOUBLE).duckdb, coerced(right, DOUBLE).duckdb
        return DOUBLE, f"({one} {operator} nullif({two}, 0))"
    if not integers:
        raise refuse(
            f"{left.spark} {operator} {right.spark} rounds a DECIMAL.",
            "write a DOUBLE: CAST(x AS DOUBLE), or 2.5D for 2.5.",
        )
    type_ = BIGINT if BIGINT in (left.type, right.type) else INT
    wide = WIDER[type_]
    value = f"(CAST({left.duckdb} AS {wide}) % nullif(CAST({right.duckdb} AS {wide}), 0))"
    return type_, f"CAST({value} AS {type_.duckdb})"


def quotient(base: Term, left: Term, right: Term) -> Term:
    """Compile div, which is BIGINT and overflows only for the least BIGINT by -1."""
    if left.type not in INTEGERS or right.type not in INTEGERS:
        raise refuse(f"{base.spark} is not of integers.", "use / for a DOUBLE result, or cast to BIGINT.")
    value = f"(CAST({left.duckdb} AS HUGEINT) // nullif(CAST({right.duckdb} AS HUGEINT), 0))"
    greatest = max(map(abs, left.range))
    fits = left.range[0] > RANGES[BIGINT][0] or right.range[0] >= 0
    bounds = (-greatest, min(greatest, RANGES[BIGINT][1]) if fits else greatest)
    return narrowed(replace(base, type=BIGINT), value, bounds)


def negated(term: Term) -> Term:
    """Compile a minus sign."""
    return signed(term, f"(- {term.spark})", "-", lambda low, high: (-high, -low))


def absolute(term: Term) -> Term:
    """Compile abs."""
    return signed(term, f"abs({term.spark})", "abs", lambda low, high: (0, max(abs(low), abs(high))))


def signed(term: Term, spark: str, function: str, bounds: Bounds) -> Term:
    """Compile a function of one number that keeps its type; the least integer overflows."""
    if not term.numeric:
        raise refuse(f"{term.spark} is {term.type or 'NULL'}, not a number.", "cast it to a number first.")
    base = replace(term, spark=spark, duckdb=f"{function}({term.duckdb})", literal=None, bounds=None)
    if term.type not in INTEGERS:
        return base
    assert term.type is not None
    return once(narrowed(base, f"{function}(CAST({term.duckdb} AS {WIDER[term.type]}))", bounds(*term.range)))


def tried(operator: str, name: str, left: Term, right: Term) -> Term:
    """Compile try_add and its kin: NULL where the operator would fail."""
    sides = unconditional(left, name), unconditional(right, name)
    spark = f"{name}({left.spark}, {right.spark})"
    return replace(arithmetic(operator, *sides), spark=spark, guards=(), nullable=True, bounds=None)
