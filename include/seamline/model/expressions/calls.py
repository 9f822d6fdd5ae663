"""What functions share: the types of their arguments, and a call that is NULL for any NULL."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.model.expressions.coercion import coerce_term
from seamline.model.expressions.terms import (
    Term,
    any_nullable,
    build_expression_error,
    columns_of,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import DATE, INT, TIMESTAMP, SqlType


def require_argument_type(term: Term, wanted: SqlType, function: str) -> Term:
    """Require an argument's type."""
    if refuse_null_constant(term).type == wanted or (wanted == TIMESTAMP and term.type == DATE):
        return coerce_term(term, wanted)
    raise build_expression_error(
        f"{function} takes {wanted}; {term.spark} is {term.type}.", f"cast it to {wanted} if you can."
    )


def compile_strict_call(name: str, type_: SqlType, arguments: Sequence[Term], duckdb: str) -> Term:
    """Make the call of a function that is NULL for any NULL; only its first argument may fail."""
    for argument in arguments[1:]:
        require_infallible_term(argument, name)
    return Term(
        type_,
        f"{name}({', '.join(argument.spark for argument in arguments)})",
        duckdb,
        any_nullable(*arguments),
        columns_of(*arguments),
        arguments[0].guards,
    )


def whole_literal(term: Term, function: str) -> int:
    """Require an INT literal."""
    if term.type == INT and isinstance(term.literal, int):
        return term.literal
    raise build_expression_error(
        f"{function} takes INT literals; {term.spark} is not one.", "write the number itself."
    )
