"""CAST and TRY_CAST between the types where both engines can be made to agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seamline.model.expressions.arithmetic import narrow_integer, refuse_failing_constant
from seamline.model.expressions.coercion import coerce_term, column_digits, wider_decimal
from seamline.model.expressions.terms import (
    INTEGERS,
    RANGES,
    Guard,
    Term,
    build_double_literal,
    build_expression_error,
    build_integer_literal,
    require_infallible_term,
)
from seamline.model.types.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    TypeKind,
)

SPACE = r"[\x00-\x20\x7F]*"


def compile_cast(term: Term, target: SqlType, *, tried: bool = False) -> Term:
    """Compile CAST, or TRY_CAST, which returns NULL where CAST would fail."""
    if tried:
        certain = compile_cast(require_infallible_term(term, "try_cast"), target)
        value = certain.duckdb
        for guard in certain.guards:
            value = f"(CASE WHEN {guard.condition_duckdb} THEN NULL ELSE {value} END)"
        spark = f"TRY_CAST({term.spark} AS {target})"
        return replace(certain, spark=spark, duckdb=value, guards=(), nullable=True)
    spark = f"CAST({term.spark} AS {target})"
    base = replace(term, type=target, spark=spark, literal=None, bounds=None)
    if term.type is None:
        return replace(base, duckdb=f"CAST(NULL AS {target.duckdb})")
    if term.type == target:
        return term
    return fold_literal_cast(term, target) or refuse_failing_constant(compile_conversion(base, term, target))


def fold_literal_cast(term: Term, target: SqlType) -> Term | None:
    """Turn a cast of a literal into the literal: 5L and 1.5D arrive as casts."""
    if isinstance(term.literal, bool) or term.literal is None or not term.numeric:
        return None
    if target == DOUBLE:
        return build_double_literal(float(term.literal))  # type: ignore[arg-type]
    if target in INTEGERS and isinstance(term.literal, int):
        low, high = RANGES[target]
        return build_integer_literal(term.literal, target) if low <= term.literal <= high else None
    return None


def compile_conversion(base: Term, term: Term, target: SqlType) -> Term:
    """Choose the conversion by both types; refused where there is none that is exact."""
    assert term.type is not None
    if target.kind is TypeKind.DECIMAL or term.type.kind is TypeKind.DECIMAL:
        return to_or_from_decimal(base, term, target)
    make = CONVERSIONS.get((term.type, target))
    if make is None:
        raise build_expression_error(
            f"{base.spark} converts {term.type} to {target}, which engines do differently.",
            "declare the column with that type in the schema, or compare in its own type.",
        )
    return make(base, term)


def to_or_from_decimal(base: Term, term: Term, target: SqlType) -> Term:
    """Compile a cast that loses no digit."""
    if target == DOUBLE:
        return replace(base, duckdb=coerce_term(term, DOUBLE).duckdb)
    exact = term.type in INTEGERS or (term.type is not None and term.type.kind is TypeKind.DECIMAL)
    if (
        target.kind is TypeKind.DECIMAL
        and exact
        and wider_decimal(column_digits(term.type), target) == target
    ):
        return replace(base, duckdb=f"CAST({term.duckdb} AS {target.duckdb})")
    raise build_expression_error(
        f"{base.spark} may lose digits.", "cast to a DECIMAL with room for all of them, or to DOUBLE."
    )


def cast_as_duckdb(base: Term, term: Term) -> Term:
    """Cast as DuckDB does."""
    assert base.type is not None
    return replace(base, duckdb=f"CAST({term.duckdb} AS {base.type.duckdb})", bounds=term.bounds)


def cast_bigint_to_int(base: Term, term: Term) -> Term:
    """Cast BIGINT to INT."""
    return narrow_integer(base, term.duckdb, term.range)


def cast_double_to_integer(base: Term, term: Term) -> Term:
    """Cast DOUBLE to an integer: cut behind the point; NaN and what is out of range fail."""
    assert base.type is not None
    low, high = RANGES[base.type]
    value, x = saturated_integer_sql("trunc", term.duckdb, base.type), term.duckdb
    outside = f"(isnan({x}) OR floor({x}) > CAST({high} AS DOUBLE) OR ceil({x}) < CAST({low} AS DOUBLE))"
    return replace(
        base, duckdb=value, guards=(*base.guards, Guard(outside, f"{base.spark} does not fit {base.type}"))
    )


def saturated_integer_sql(function: str, x: str, type_: SqlType) -> str:
    """Turn a DOUBLE into an integer that stays at the ends of its range, as Java does; NaN is 0."""
    low, high = RANGES[type_]
    return (
        f"(CASE WHEN isnan({x}) THEN CAST(0 AS {type_.duckdb})"
        f" WHEN {x} >= CAST({high} AS DOUBLE) THEN CAST({high} AS {type_.duckdb})"
        f" WHEN {x} <= CAST({low} AS DOUBLE) THEN CAST({low} AS {type_.duckdb})"
        f" ELSE TRY_CAST({function}({x}) AS {type_.duckdb}) END)"
    )


def cast_text_to_integer(base: Term, term: Term) -> Term:
    """Cast text to an integer: digits with a sign, blanks around them."""
    assert base.type is not None
    number = f"regexp_extract({term.duckdb}, '^{SPACE}([+-]?[0-9]+){SPACE}$', 1)"
    value = f"TRY_CAST({number} AS {base.type.duckdb})"
    failed = f"({term.duckdb} IS NOT NULL AND {value} IS NULL)"
    return replace(
        base,
        duckdb=value,
        guards=(*base.guards, Guard(failed, f"{base.spark} is not of a number that fits")),
    )


def cast_number_to_boolean(base: Term, term: Term) -> Term:
    """Cast a number to BOOLEAN."""
    return replace(base, duckdb=f"({term.duckdb} <> 0)")


def day_of(base: Term, term: Term) -> Term:
    """Cast an instant to its UTC day."""
    return replace(base, duckdb=f"CAST({utc_timestamp_sql(term)} AS DATE)")


def cast_date_to_timestamp(base: Term, term: Term) -> Term:
    """Cast a day to its first instant in UTC."""
    return replace(base, duckdb=coerce_term(term, TIMESTAMP).duckdb)


def utc_timestamp_sql(term: Term) -> str:
    """Return DuckDB's zoneless timestamp of an instant in UTC; never asks for the session's zone."""
    return f"make_timestamp(epoch_us({term.duckdb}))"


CONVERSIONS: dict[tuple[SqlType, SqlType], Callable[[Term, Term], Term]] = {
    (INT, BIGINT): cast_as_duckdb,
    (INT, DOUBLE): cast_as_duckdb,
    (BIGINT, DOUBLE): cast_as_duckdb,
    (BOOLEAN, INT): cast_as_duckdb,
    (BOOLEAN, BIGINT): cast_as_duckdb,
    (INT, STRING): cast_as_duckdb,
    (BIGINT, STRING): cast_as_duckdb,
    (BOOLEAN, STRING): cast_as_duckdb,
    (BIGINT, INT): cast_bigint_to_int,
    (DOUBLE, INT): cast_double_to_integer,
    (DOUBLE, BIGINT): cast_double_to_integer,
    (STRING, INT): cast_text_to_integer,
    (STRING, BIGINT): cast_text_to_integer,
    (INT, BOOLEAN): cast_number_to_boolean,
    (BIGINT, BOOLEAN): cast_number_to_boolean,
    (TIMESTAMP, DATE): day_of,
    (DATE, TIMESTAMP): cast_date_to_timestamp,
}
