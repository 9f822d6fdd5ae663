"""Spark SQL expressions, compiled to DuckDB SQL that gives the same answer for every row."""

from seamline.model.expressions.compiler import compile_expression
from seamline.model.expressions.terms import Expression, Guard

__all__ = ["Expression", "Guard", "compile_expression"]
