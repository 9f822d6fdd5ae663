"""Numbers as an expression spells them."""

from __future__ import annotations

from sqlglot import exp


def negate_literal(number: exp.Expr) -> exp.Literal:
    """Put a minus sign into a number: the least INT and BIGINT cannot be written without it."""
    return exp.Literal(this=f"-{number.name}", is_string=False)


def is_decimal(text: str) -> bool:
    """Whether a literal is the number of a BD literal."""
    return text.replace(".", "", 1).lstrip("-").isdigit()
