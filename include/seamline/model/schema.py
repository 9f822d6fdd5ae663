"""The columns a source promises: names, types, and whether each may be absent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from seamline.model.errors import DefinitionError


class Kind(Enum):
    """The families of types both engines agree on."""

    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    BINARY = "BINARY"


DUCKDB = {
    Kind.STRING: "VARCHAR",
    Kind.INT: "INTEGER",
    Kind.TIMESTAMP: "TIMESTAMPTZ",
    Kind.BINARY: "BLOB",
}
SYNONYMS = {"INTEGER": "INT", "LONG": "BIGINT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL"}
TYPES = "STRING, BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p,s), DATE, TIMESTAMP, BINARY"


@dataclass(frozen=True)
class SqlType:
    """
    One type, with its spelling in each engine.

    TIMESTAMP is an instant in microseconds: Spark's TIMESTAMP, Arrow's ``timestamp[us, UTC]``, DuckDB's
    TIMESTAMPTZ. Compiled expressions read UTC from the instant itself and never ask for a session's zone;
    only casts between text and TIMESTAMPTZ outside of them do, so sessions are set to UTC all the same.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0

    @property
    def spark(self) -> str:
        """Spell it for Spark: ``BIGINT``, ``DECIMAL(10,2)``."""
        return f"DECIMAL({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    @property
    def duckdb(self) -> str:
        """Spell it for DuckDB."""
        return DUCKDB.get(self.kind, self.spark)

    def __str__(self) -> str:
        return self.spark


STRING, BOOLEAN, INT, BIGINT = map(SqlType, (Kind.STRING, Kind.BOOLEAN, Kind.INT, Kind.BIGINT))
DOUBLE, DATE, TIMESTAMP, BINARY = map(SqlType, (Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP, Kind.BINARY))


def decimal(precision: int, scale: int) -> SqlType:
    """Give DECIMAL(precision, scale); at most 38 digits, of which at most all are behind the point."""
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise DefinitionError(
            f"DECIMAL({precision},{scale}) does not exist.", hint="1 to 38 digits, scale from 0 to that many."
        )
    return SqlType(Kind.DECIMAL, precision, scale)


@dataclass(frozen=True)
class Field:
    """A column of the source."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a source in their order."""

    fields: tuple[Field, ...]

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Read ``name TYPE [NOT NULL], ...``; DefinitionError names the column that is wrong."""
        parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
        if not any(parts):
            raise DefinitionError(
                "The schema is empty.", hint='list the columns: "carrier STRING, delay DOUBLE".'
            )
        fields = tuple(parse_field(part) for part in parts)
        seen: dict[str, str] = {}
        for name in (field.name for field in fields):
            if name.lower() in seen:
                raise DefinitionError(
                    f"Column {name!r} is declared twice (as {seen[name.lower()]!r} before).",
                    hint="names must differ in more than upper and lower case: Spark ignores case.",
                )
            seen[name.lower()] = name
        return cls(fields)

    def field(self, name: str) -> Field | None:
        """Find a column as Spark does: by its name, whatever the case."""
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)


FIELD = re.compile(r"(`[^`]+`|\S+)\s+(\w+(?:\s*\([^)]*\))?)\s*(NOT\s+NULL)?", re.IGNORECASE | re.ASCII)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def parse_field(text: str) -> Field:
    """Read ``name TYPE [NOT NULL]``."""
    match = FIELD.fullmatch(text)
    if match is None:
        raise DefinitionError(f"{text!r} is not a column.", hint='write "name TYPE" or "name TYPE NOT NULL".')
    name = match[1].strip("`")
    if name.startswith("_"):
        raise DefinitionError(
            f"Column {name!r} starts with an underscore.", hint="such names are Seamline's own: rename it."
        )
    if not NAME.fullmatch(name):
        raise DefinitionError(f"{name!r} is not a column name.", hint="use letters, digits and underscores.")
    return Field(name, parse_type(match[2], name), nullable=match[3] is None)


def parse_type(text: str, column: str) -> SqlType:
    """Read a type; ``column`` is named in the error."""
    word, *digits = re.findall(r"\w+", text.upper())
    word = SYNONYMS.get(word, word)
    if word == "DECIMAL" and len(digits) <= 2 and all(digit.isdigit() for digit in digits):
        precision, scale = map(int, [*digits, *["10", "0"][len(digits) :]])
        return decimal(precision, scale)
    if word not in Kind.__members__ or "(" in text:
        raise DefinitionError(f"Column {column!r} has an unknown type {text!r}.", hint=f"use one of {TYPES}.")
    return SqlType(Kind[word])
