"""Spark's types in PostgreSQL: each has one, and a column changes to another only where no value loses a digit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.types.schema import TypeKind, build_decimal_type, parse_type
from seamline.sinks.postgres.column_types import TYPES, postgres_type, widens


@pytest.mark.parametrize(
    ("spark", "postgres"),
    [
        ("STRING", "text"),
        ("BOOLEAN", "boolean"),
        ("INT", "integer"),
        ("BIGINT", "bigint"),
        ("DOUBLE", "double precision"),
        ("DECIMAL(38,2)", "numeric(38,2)"),
        ("DATE", "date"),
        ("TIMESTAMP", "timestamp with time zone"),
        ("BINARY", "bytea"),
        ("ARRAY<DOUBLE>", "jsonb"),
        ("MAP<STRING, BIGINT>", "jsonb"),
        ("STRUCT<a: INT>", "jsonb"),
    ],
)
def test_each_type_has_one_in_postgresql(spark: str, postgres: str) -> None:
    """docs/sinks-postgresql.md lists them: who declares a column there reads the page alone."""
    assert postgres_type(parse_type(spark, "")) == postgres


def test_no_kind_of_type_was_forgotten() -> None:
    """A kind more would fail when the first table has it."""
    assert TYPES.keys() == {*TypeKind} - {TypeKind.DECIMAL}


@given(st.integers(1, 38), st.integers(1, 38), st.data())
def test_a_wider_decimal_holds_the_largest_of_the_narrower(
    held: int, wanted: int, data: st.DataObject
) -> None:
    """PostgreSQL rounds what has more digits behind the point than its column, without a word."""
    types = [build_decimal_type(digits, data.draw(st.integers(0, digits))) for digits in (held, wanted)]
    narrow, wide = types
    largest = Fraction(10**narrow.precision - 1, 10**narrow.scale)
    fits = narrow.scale <= wide.scale and largest < 10 ** (wide.precision - wide.scale)
    assert widens(postgres_type(narrow), postgres_type(wide)) == fits


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        ("integer", "bigint", True),
        ("bigint", "integer", False),
        ("integer", "double precision", True),
        ("bigint", "double precision", False),
        ("bigint", "numeric(38,0)", True),
        ("bigint", "numeric(20,2)", False),
        ("integer", "numeric(12,2)", True),
        ("text", "bigint", False),
        ("numeric(10,2)", "text", False),
    ],
)
def test_numbers_change_to_those_that_hold_them(held: str, wanted: str, *, fits: bool) -> None:
    """What is refused is said with its way out, and what is accepted is never another number."""
    assert widens(held, wanted) is fits
