"""A source's schema, as an author writes it."""

from __future__ import annotations

import pytest

from seamline.model.errors import DefinitionError
from seamline.model.types.schema import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    build_decimal_type,
)


def test_reads_names_types_and_nullability() -> None:
    """Everything downstream (tables, kernel, expressions) is made from these fields."""
    schema = Schema.parse(
        "carrier STRING NOT NULL, flight int, at TIMESTAMP, price DECIMAL(10, 2), delay DOUBLE"
    )
    assert schema.fields == (
        Field("carrier", STRING, nullable=False),
        Field("flight", INT),
        Field("at", TIMESTAMP),
        Field("price", build_decimal_type(10, 2)),
        Field("delay", DOUBLE),
    )


def test_spells_types_for_both_engines() -> None:
    """A type is one thing with two spellings; the Arrow side is chosen by the Spark one."""
    spelled = [
        (f.type.spark, f.type.duckdb) for f in Schema.parse("a LONG, b BINARY, c TIMESTAMP, d DEC").fields
    ]
    assert spelled == [
        ("BIGINT", "BIGINT"),
        ("BINARY", "BLOB"),
        ("TIMESTAMP", "TIMESTAMPTZ"),
        ("DECIMAL(10,0)", "DECIMAL(10,0)"),
    ]


def test_reads_nested_types() -> None:
    """A record is rarely flat; both engines must be told of the same parts."""
    (field,) = Schema.parse(
        "cart STRUCT<id: BIGINT NOT NULL, lines ARRAY<STRUCT<sku: STRING, price: DECIMAL(6, 2)>>,"
        " tags: MAP<STRING,ARRAY<INT>>> NOT NULL"
    ).fields
    assert not field.nullable
    assert field.type.spark == (
        "STRUCT<id: BIGINT NOT NULL, lines: ARRAY<STRUCT<sku: STRING, price: DECIMAL(6,2)>>, "
        "tags: MAP<STRING, ARRAY<INT>>>"
    )
    assert Schema.parse(f"cart {field.type.spark}").fields[0].type == field.type
    assert field.type.duckdb == (
        'STRUCT("id" BIGINT, "lines" STRUCT("sku" VARCHAR, "price" DECIMAL(6,2))[], '
        '"tags" MAP(VARCHAR, INTEGER[]))'
    )


def test_finds_a_column_whatever_the_case() -> None:
    """Spark ignores case in names, so must we."""
    assert Schema.parse("Flight BIGINT").field("fLIGHT") == Field("Flight", BIGINT)
    assert Schema.parse("flight BIGINT").field("carrier") is None


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "empty"),
        ("a INT,", "not a column"),
        ("a", "not a column"),
        ("a FLOAT", "unknown type 'FLOAT'"),
        ("a INT(3)", "unknown type"),
        ("a ARRAY<FLOAT>", "unknown type 'FLOAT'"),
        ("a ARRAY<INT, INT>", "unknown type"),
        ("a ARRAY", "unknown type 'ARRAY'"),
        ("a MAP<INT, STRING>", "unknown type"),
        ("a STRUCT<>", "not a column"),
        ("a STRUCT<b: INT, B: INT>", "declared twice"),
        ("a ARRAY<INT", "unknown type"),
        ("a INT, a STRING", "declared twice"),
        ("a INT, A STRING", "declared twice"),
        ("_epoch BIGINT", "underscore"),
        ("a-b INT", "not a column name"),
        ("d DECIMAL(39,2)", "DECIMAL(39,2)"),
        ("d DECIMAL(5,6)", "DECIMAL(5,6)"),
        ("d DECIMAL(²,1)", "DECIMAL(²,1)"),
        (f"d DECIMAL({'9' * 5000},1)", "unknown type"),
        (f"d {'MAP<STRING, ' * 2000}INT{'>' * 2000}", "nests more than 50 types"),
    ],
)
def test_refuses_what_cannot_be_meant(text: str, fact: str) -> None:
    """A wrong schema is found when the definition loads, not when a record arrives."""
    with pytest.raises(DefinitionError) as error:
        Schema.parse(text)
    assert fact in error.value.message
    assert error.value.hint
