"""Spark SQL expressions, compiled to DuckDB SQL that returns the same answer for every row."""

from __future__ import annotations

from seamline.model.expressions.terms import Expression, Guard, build_expression_error
from seamline.model.types.schema import Schema

__all__ = ["Expression", "Guard", "compile_expression"]


def compile_expression(text: str, schema: Schema) -> Expression:
    """Compile an expression; ExpressionError where it is wrong or means two things.

    The SQL parser is imported at the first call: it takes 0.4 s, which a DAG file does not have.
    """
    from seamline.model.expressions.compiler import compile_expression as compiled

    try:
        return compiled(text, schema)
    except RecursionError:
        said = f"{text[:200]!r} nests too many levels: each parenthesis, NOT, AND, OR and operator is one."
        raise build_expression_error(
            said, "cut it into columns of select=, or into several conditions."
        ) from None
