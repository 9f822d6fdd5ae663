"""Which common type Spark chooses for two terms, and how DuckDB reaches it without loss."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from seamline.model.expressions.terms import (
    INTEGERS,
    NULL,
    Term,
    build_date_literal,
    build_double_literal,
    build_expression_error,
    build_timestamp_literal,
)
from seamline.model.types.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    TypeKind,
    build_decimal_type,
)

DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?)?", re.ASCII)


def parse_day(text: str) -> Term:
    """Read ``2013-01-31``; other spellings mean different days to different engines."""
    try:
        if DAY.fullmatch(text):
            return build_date_literal(date.fromisoformat(text))
    except ValueError:
        pass
    raise build_expression_error(f"{text!r} is not a date.", "write it as 2013-01-31.")


def parse_instant(text: str) -> Term:
    """Read a day or a moment; without a zone it is UTC."""
    try:
        if MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text)
            return build_timestamp_literal(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))
    except (ValueError, OverflowError):
        pass
    raise build_expression_error(
        f"{text!r} is not a timestamp.", "write it as 2013-01-31 10:15:00 or 2013-01-31T10:15:00Z."
    )


def digits_of(term: Term) -> SqlType:
    """Return the DECIMAL type Spark sees in an exact number: a literal has just its own digits."""
    if term.type is not None and term.type.kind is TypeKind.DECIMAL:
        return term.type
    if term.type == INT and isinstance(term.literal, int):
        return build_decimal_type(len(str(abs(term.literal))), 0)
    if term.literal is not None:
        raise build_expression_error(
            f"{term.spark} is combined with a DECIMAL.", "write the number without L or a cast, or cast both."
        )
    return column_digits(term.type)


def column_digits(type_: SqlType | None) -> SqlType:
    """Return the DECIMAL type that holds every value of an exact type."""
    if type_ in INTEGERS:
        return build_decimal_type(10 if type_ == INT else 20, 0)
    assert type_ is not None
    return type_


def wider_decimal(left: SqlType, right: SqlType) -> SqlType:
    """Return the DECIMAL that holds both; refused where Spark would start to round."""
    scale = max(left.scale, right.scale)
    return require_decimal_width(
        max(left.precision - left.scale, right.precision - right.scale) + scale, scale
    )


def require_decimal_width(precision: int, scale: int) -> SqlType:
    """Return DECIMAL(precision, scale); refused above 38 digits."""
    if precision > 38:
        raise build_expression_error(
            f"The result needs {precision} digits, and Spark would round it to 38.",
            "cast the operands to DOUBLE, or declare narrower DECIMALs.",
        )
    return build_decimal_type(precision, scale)


def find_common_type(terms: Sequence[Term], *, literal_digits: bool = False) -> SqlType | None:
    """
    Find the type that Spark brings the terms to; None if all are NULL.

    ``literal_digits``: comparisons count the digits of an INT literal, CASE and its kin those of INT.
    """
    present = [term for term in terms if term.type is not None]
    for term in present:
        if term.type is not None and term.type.nested:
            raise build_expression_error(
                f"{term.spark} is {term.type}, which has parts.", "select one of them: a.b, a[0], a['key']."
            )
    result: SqlType | None = present[0].type if present else None
    if all(term.type == result for term in present):
        return result
    if all(term.numeric for term in present):
        if any(term.type == DOUBLE for term in present):
            return DOUBLE
        if any(term.type is not None and term.type.kind is TypeKind.DECIMAL for term in present):
            widths = [digits_of(term) if literal_digits else column_digits(term.type) for term in present]
            result = widths[0]
            for width in widths[1:]:
                result = wider_decimal(result, width)
            return result
        return BIGINT
    if {term.type for term in present} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    kinds = " and ".join(dict.fromkeys(str(term.type) for term in present))
    raise build_expression_error(
        f"{', '.join(term.spark for term in present)} are {kinds}.",
        "cast them to one type; Spark's implicit casts from and to text are not supported.",
    )


def coerce_term(term: Term, wanted: SqlType) -> Term:
    """Bring a term to a wider type as Spark would without being asked."""
    if term.type == wanted:
        return term
    return replace(term, type=wanted, duckdb=coercion_sql(term, wanted), literal=None)


def coercion_sql(term: Term, wanted: SqlType) -> str:
    """Spell the widening for DuckDB."""
    if term.type is None:
        return f"CAST({NULL.duckdb} AS {wanted.duckdb})"
    if term.type == DATE:
        return f"make_timestamptz(epoch_us(CAST({term.duckdb} AS TIMESTAMP)))"
    if wanted == DOUBLE and term.type.kind is TypeKind.DECIMAL:
        if isinstance(term.literal, Decimal):
            return build_double_literal(float(term.literal)).duckdb
        if term.type.precision > 15:
            raise build_expression_error(
                f"{term.spark} is {term.type}, and engines convert more than 15 digits to DOUBLE differently.",
                "declare the column DOUBLE, or a narrower DECIMAL.",
            )
    return f"CAST({term.duckdb} AS {wanted.duckdb})"


def coerce_operands(left: Term, right: Term) -> tuple[Term, Term]:
    """Bring two sides of a comparison to one type; text beside a DATE or TIMESTAMP must be a literal."""
    left, right = parse_temporal_literal(left, right), parse_temporal_literal(right, left)
    wanted = find_common_type([left, right], literal_digits=True) or INT
    return coerce_term(left, wanted), coerce_term(right, wanted)


def parse_temporal_literal(term: Term, other: Term) -> Term:
    """Read a text literal that is compared with a DATE or a TIMESTAMP."""
    if term.type != STRING or not isinstance(term.literal, str):
        return term
    if other.type == DATE:
        return replace(parse_day(term.literal), spark=term.spark)
    if other.type == TIMESTAMP:
        return replace(parse_instant(term.literal), spark=term.spark)
    return term
