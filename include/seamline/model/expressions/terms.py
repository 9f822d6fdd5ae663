"""What a piece of an expression is in both engines, and when Spark would raise for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from seamline.model.errors import ExpressionError
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

Literal = bool | int | float | Decimal | str | date | datetime
RANGES = {INT: (-(2**31), 2**31 - 1), BIGINT: (-(2**63), 2**63 - 1)}
INTEGERS = (INT, BIGINT)


@dataclass(frozen=True)
class Guard:
    """A condition under which Spark would raise for a row; only TRUE refuses, NULL does not."""

    condition_duckdb: str
    """The condition, in DuckDB's SQL."""
    message: str
    """Why a row is refused."""


@dataclass(frozen=True)
class Expression:
    """A Spark SQL expression and its exact equal in DuckDB.

    ``duckdb`` never raises; it means something only for rows of which no guard is true, and the kernel refuses the
    others with the guard's message.
    """

    text: str
    """As the user wrote it."""
    spark: str
    """The text in one normal form."""
    duckdb: str
    """The same for DuckDB."""
    type: SqlType
    """The type of its value."""
    columns: frozenset[str]
    """The columns that it reads."""
    guards: tuple[Guard, ...]
    """When Spark would raise."""


@dataclass(frozen=True)
class Term:
    """A typed piece of an expression."""

    type: SqlType | None
    """Its type, None for a bare NULL."""
    spark: str
    """Its text for Spark."""
    duckdb: str
    """Its text for DuckDB."""
    nullable: bool = True
    """Whether it may be NULL."""
    columns: frozenset[str] = frozenset()
    """The columns that it reads."""
    guards: tuple[Guard, ...] = ()
    """When Spark would raise."""
    literal: Literal | None = None
    """Its value where it is a literal."""
    bounds: tuple[int, int] | None = None
    """The least and greatest value, of an ARRAY its length, inclusive, where they are known."""

    @property
    def numeric(self) -> bool:
        """Whether arithmetic takes it."""
        return self.type is not None and (
            self.type in (INT, BIGINT, DOUBLE) or self.type.kind is TypeKind.DECIMAL
        )

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest integer it can be."""
        return self.bounds or RANGES[self.type or BIGINT]


NULL = Term(None, "NULL", "NULL")


def build_expression_error(what: str, hint: str) -> ExpressionError:
    """Make the error of a form that is wrong or cannot be made equal."""
    return ExpressionError(what, hint=hint)


def columns_of(*terms: Term) -> frozenset[str]:
    """Gather the columns."""
    return frozenset[str]().union(*(term.columns for term in terms))


def any_nullable(*terms: Term) -> bool:
    """Whether one of them may be NULL."""
    return any(term.nullable for term in terms)


def restrict_guards(condition: str, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """Restrict guards to rows for which Spark evaluates what they guard."""
    return tuple(Guard(f"({condition} AND {guard.condition_duckdb})", guard.message) for guard in guards)


def left_first(left: Term, right: Term) -> tuple[Guard, ...]:
    """Gather guards as Spark does for most operators: the right side only if the left is not NULL."""
    right_guards = (
        restrict_guards(f"{left.duckdb} IS NOT NULL", right.guards) if left.nullable else right.guards
    )
    return left.guards + right_guards


def require_infallible_term(term: Term, place: str) -> Term:
    """Refuse a term that can fail where Spark evaluates it for some rows only."""
    if term.guards:
        raise build_expression_error(
            f"{term.spark} can fail, and {place} decides by row whether it is evaluated at all.",
            "use try_divide, try_add, try_subtract, try_multiply or try_cast there, which return NULL instead.",
        )
    return term


def refuse_null_constant(term: Term) -> Term:
    """Refuse what is a constant and may be NULL: engines fold it away differently."""
    if term.type is None or (term.nullable and not term.columns):
        raise build_expression_error(
            f"{term.spark} is a constant that may be NULL.", "test for NULL with IS NULL or IS NOT NULL."
        )
    return term


def quote_duckdb_string(text: str) -> str:
    """Quote a DuckDB string."""
    return "'" + text.replace("'", "''") + "'"


def build_string_literal(text: str) -> Term:
    """Make a string literal."""
    if any(ord(letter) < 32 and letter not in "\n\r\t" for letter in text):
        raise build_expression_error(
            "A string literal contains a control character.", "only \\n, \\r and \\t are supported."
        )
    escaped = text
    for plain, spelled in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        escaped = escaped.replace(plain, spelled)
    return Term(STRING, f"'{escaped}'", quote_duckdb_string(text), nullable=False, literal=text)


def build_integer_literal(value: int, type_: SqlType | None = None) -> Term:
    """Make an INT or BIGINT literal; the type Spark would choose unless given."""
    wanted = type_ or next((each for each in INTEGERS if RANGES[each][0] <= value <= RANGES[each][1]), None)
    if wanted is None:
        return build_decimal_literal(Decimal(value))
    suffix = "L" if wanted is BIGINT else ""
    duckdb = f"CAST({value} AS {wanted.duckdb})"
    return Term(wanted, f"{value}{suffix}", duckdb, nullable=False, literal=value, bounds=(value, value))


def build_decimal_literal(value: Decimal) -> Term:
    """Make a DECIMAL literal of the width Spark gives it: 1.5 is DECIMAL(2,1)."""
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits), scale)
    if precision > 38:
        raise build_expression_error(
            f"{value} has more than 38 digits.", "write it as a DOUBLE: with an exponent or a D."
        )
    type_ = build_decimal_type(precision, scale)
    return Term(type_, f"{value:f}BD", f"CAST('{value:f}' AS {type_.duckdb})", nullable=False, literal=value)


def build_double_literal(value: float) -> Term:
    """Make a DOUBLE literal."""
    if not math.isfinite(value):
        raise build_expression_error(
            "The number is too large for a DOUBLE.", "the largest is 1.7976931348623157e308."
        )
    return Term(DOUBLE, f"{value!r}D", f"CAST('{value!r}' AS DOUBLE)", nullable=False, literal=value)


def build_boolean_literal(value: bool) -> Term:
    """Make TRUE or FALSE."""
    word = "TRUE" if value else "FALSE"
    return Term(SqlType(TypeKind.BOOLEAN), word, word, nullable=False, literal=value)


def build_date_literal(value: date) -> Term:
    """Make a DATE literal."""
    text = f"DATE '{value.isoformat()}'"
    return Term(DATE, text, text, nullable=False, literal=value)


def build_timestamp_literal(value: datetime) -> Term:
    """Make a TIMESTAMP literal from an aware moment in UTC."""
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return Term(TIMESTAMP, f"TIMESTAMP '{text}Z'", f"TIMESTAMPTZ '{text}+00'", nullable=False, literal=value)
