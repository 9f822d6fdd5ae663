"""Spark's hash of values: Murmur3, each value beginning with the hash of those before it; a NULL changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from seamline.model.expressions.terms import (
    INTEGERS,
    Term,
    build_expression_error,
    columns_of,
    refuse_null_constant,
)
from seamline.model.types.schema import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, TypeKind

FUNCTIONS = {
    "INTEGER": "spark_hash_integer",
    "BIGINT": "spark_hash_bigint",
    "DOUBLE": "spark_hash_double",
    "BLOB": "spark_hash_blob",
    "VARCHAR": "spark_hash_varchar",
    "DECIMAL(38,0)": "spark_hash_decimal",
}
"""The functions that our DuckDBs have, each of a hash and a value, by the value's type."""
SEED = "42::INTEGER"
LONG_DIGITS = 18
"""Spark hashes a DECIMAL of no more digits as a BIGINT, a wider one as bytes."""


def compile_hash(arguments: Sequence[Term]) -> Term:
    """Compile hash: INT, never NULL. Spark evaluates all of the arguments, whatever they are."""
    duckdb = reduce(spell_hashed, map(refuse_null_constant, arguments), SEED)
    return Term(
        INT,
        f"hash({', '.join(argument.spark for argument in arguments)})",
        duckdb,
        nullable=False,
        columns=columns_of(*arguments),
        guards=tuple(guard for argument in arguments for guard in argument.guards),
    )


def spell_hashed(before: str, term: Term) -> str:
    """Spell for DuckDB the hash of a value after those of which the hash is ``before``."""
    kind, value = spell_hashable(term)
    return f"{FUNCTIONS[kind]}({before}, {value})"


def spell_hashable(term: Term) -> tuple[str, str]:
    """Return the type as which Spark hashes a value, and the value as that, for DuckDB."""
    type_, value = term.type, term.duckdb
    assert type_ is not None
    if type_ in (*INTEGERS, DOUBLE, STRING) or type_.kind is TypeKind.BINARY:
        return type_.duckdb, value
    if type_.kind is TypeKind.BOOLEAN:
        return INT.duckdb, f"CAST({value} AS INTEGER)"
    if type_ == DATE:
        return INT.duckdb, f"CAST(datediff('day', DATE '1970-01-01', {value}) AS INTEGER)"
    if type_ == TIMESTAMP:
        return BIGINT.duckdb, f"epoch_us({value})"
    if type_.kind is TypeKind.DECIMAL:
        digits = f"replace(CAST({value} AS VARCHAR), '.', '')" if type_.scale else value
        return (
            (BIGINT.duckdb, f"CAST({digits} AS BIGINT)")
            if type_.precision <= LONG_DIGITS
            else ("DECIMAL(38,0)", f"CAST({digits} AS DECIMAL(38,0))")
        )
    raise build_expression_error(f"hash takes no nested value; {term.spark} is {type_}.", "hash its parts.")
