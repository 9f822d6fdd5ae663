"""The types that a cast may name."""

from __future__ import annotations

from sqlglot import exp

from seamline.model.expressions.terms import build_expression_error
from seamline.model.types.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    build_decimal_type,
)

DType = exp.DataType.Type
TYPES = {
    DType.INT: INT,
    DType.BIGINT: BIGINT,
    DType.DOUBLE: DOUBLE,
    DType.TEXT: STRING,
    DType.BOOLEAN: BOOLEAN,
    DType.DATE: DATE,
    DType.TIMESTAMPTZ: TIMESTAMP,
    DType.BINARY: BINARY,
}


def read_type(node: exp.Expr) -> SqlType:
    """Read the type of a cast."""
    kind = node.args["this"]
    if kind == DType.DECIMAL:
        precision, scale = [*(int(each.name) for each in node.expressions), *[10, 0][len(node.expressions) :]]
        return build_decimal_type(precision, scale)
    if kind not in TYPES or node.expressions:
        raise build_expression_error(
            f"Type {node.sql(dialect='spark')} is not supported.",
            "use INT, BIGINT, DOUBLE, DECIMAL, STRING, BOOLEAN, DATE or TIMESTAMP.",
        )
    return TYPES[kind]
