"""Text to a syntax tree, read with Spark's rules and nothing that sqlglot would read otherwise."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from seamline.model.expressions.spans import WAY_OUT
from seamline.model.expressions.terms import build_expression_error

KEPT = {name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "TRIM")}
SHORT = frozenset(exp.TimeUnit.UNABBREVIATED_UNIT_NAME)
"""Units that sqlglot spells out."""
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
PREDICATES = (
    *COMPARISONS,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.RegexpLike,
    exp.Escape,
    exp.Not,
    exp.And,
    exp.Or,
)


class PlainSpark(Spark):
    """Spark's dialect that leaves function calls as they are written."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        """Keep names and arguments; CAST, TRIM, IF and CASE have a grammar of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = KEPT
        NO_PAREN_FUNCTIONS: ClassVar[dict[str, Any]] = {}


def read(text: str) -> exp.Expr:
    """Parse an expression; ExpressionError says where it breaks off."""
    try:
        tree = sqlglot.parse_one(text, dialect=PlainSpark)
    except (ParseError, TokenError) as error:
        first = str(error).splitlines()[0] if str(error) else "it cannot be read"
        raise build_expression_error(
            f"{text!r} is not an expression: {first}", "write one Spark SQL expression."
        ) from None
    if any(isinstance(node, exp.Interval) for node in tree.walk()):
        check_units(text)
    for node in tree.walk():
        check_precedence(node)
    return tree


def check_units(text: str) -> None:
    """Refuse INTERVAL 5 M, which sqlglot takes for minutes, and Spark for nothing."""
    tokens = PlainSpark().tokenize(text)
    for length, unit in pairwise(tokens):
        if length.token_type in (TokenType.NUMBER, TokenType.STRING) and unit.text.upper() in SHORT:
            raise build_expression_error(
                f"{text[length.start : unit.end + 1]} has a unit that is not written out.", WAY_OUT
            )


def check_precedence(node: exp.Expr) -> None:
    """Refuse chained comparisons: sqlglot and Spark group them differently."""
    if not isinstance(node, (*COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like, exp.RegexpLike)):
        return
    sides = [node.this, node.args.get("expression"), node.args.get("low"), node.args.get("high")]
    if any(isinstance(side, PREDICATES) for side in sides):
        raise build_expression_error(
            f"{node.sql(dialect='spark')} chains comparisons.", "add parentheses around one of them."
        )
