"""The columns a source promises: names, types, and whether each may be absent."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from seamline.model.errors import DefinitionError


class TypeKind(Enum):
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
    STRUCT = "STRUCT"
    ARRAY = "ARRAY"
    MAP = "MAP"


DERIVED_KIND = "_kind"
"""The column that says what a row of a join is; no definition names it."""
NESTED = (TypeKind.STRUCT, TypeKind.ARRAY, TypeKind.MAP)
DUCKDB = {
    TypeKind.STRING: "VARCHAR",
    TypeKind.INT: "INTEGER",
    TypeKind.TIMESTAMP: "TIMESTAMPTZ",
    TypeKind.BINARY: "BLOB",
}
SYNONYMS = {"INTEGER": "INT", "LONG": "BIGINT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL"}
TYPES = (
    "STRING, BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p,s), DATE, TIMESTAMP, BINARY, STRUCT<name: TYPE>, "
    "ARRAY<TYPE>, MAP<STRING, TYPE>"
)


@dataclass(frozen=True)
class SqlType:
    """
    One type, with its spelling in each engine.

    TIMESTAMP is an instant in microseconds: Spark's TIMESTAMP, Arrow's ``timestamp[us, UTC]``, DuckDB's
    TIMESTAMPTZ. Compiled expressions read UTC from the instant itself and never ask for a session's zone;
    only casts between text and TIMESTAMPTZ outside of them do, so sessions are set to UTC all the same.
    A STRUCT has ``fields``; an ARRAY's items and a MAP's values are of type ``element``, a MAP's keys text.
    """

    kind: TypeKind
    """The type without its parameters."""
    precision: int = 0
    """Digits of a DECIMAL in all; 0 otherwise."""
    scale: int = 0
    """Digits of a DECIMAL behind its point; 0 otherwise."""
    fields: tuple[Field, ...] = ()
    """Of a STRUCT, in their order; empty otherwise."""
    element: SqlType | None = None
    """Of an ARRAY's items and a MAP's values; None otherwise. A MAP's keys are text."""

    @property
    def nested(self) -> bool:
        """Return whether values of it have parts."""
        return self.kind in NESTED

    @property
    def decimals(self) -> bool:
        """Return whether values of it are DECIMAL, or have parts that are."""
        inner = [*(field.type for field in self.fields), *([self.element] if self.element else [])]
        return self.kind is TypeKind.DECIMAL or any(each.decimals for each in inner)

    @property
    def spark(self) -> str:
        """Spell it for Spark: ``BIGINT``, ``DECIMAL(10,2)``, ``ARRAY<STRING>``."""
        match self.kind:
            case TypeKind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case TypeKind.STRUCT:
                return f"STRUCT<{', '.join(map(str, self.fields))}>"
            case TypeKind.ARRAY:
                return f"ARRAY<{self.element}>"
            case TypeKind.MAP:
                return f"MAP<STRING, {self.element}>"
        return str(self.kind.value)

    @property
    def duckdb(self) -> str:
        """Spell it for DuckDB."""
        match self.kind:
            case TypeKind.STRUCT:
                parts = ", ".join(f'"{field.name}" {field.type.duckdb}' for field in self.fields)
                return f"STRUCT({parts})"
            case TypeKind.ARRAY:
                assert self.element is not None
                return f"{self.element.duckdb}[]"
            case TypeKind.MAP:
                assert self.element is not None
                return f"MAP(VARCHAR, {self.element.duckdb})"
        return DUCKDB.get(self.kind, self.spark)

    def __str__(self) -> str:
        return self.spark


STRING, BOOLEAN, INT, BIGINT = map(
    SqlType, (TypeKind.STRING, TypeKind.BOOLEAN, TypeKind.INT, TypeKind.BIGINT)
)
DOUBLE, DATE, TIMESTAMP, BINARY = map(
    SqlType, (TypeKind.DOUBLE, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.BINARY)
)


def build_decimal_type(precision: int, scale: int) -> SqlType:
    """Return DECIMAL(precision, scale); at most 38 digits, of which at most all are behind the point."""
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise DefinitionError(
            f"DECIMAL({precision},{scale}) does not exist.",
            hint="use 1 to 38 digits, and a scale from 0 to that many.",
        )
    return SqlType(TypeKind.DECIMAL, precision, scale)


@dataclass(frozen=True)
class Field:
    """A column of the source, or a part of a STRUCT."""

    name: str
    """Its name."""
    type: SqlType
    """Its type."""
    nullable: bool = True
    """Whether NULL is allowed."""
    within: str = ""
    """The STRUCT column of which it is a part, where a view has the part as a column; else empty."""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True)
class Schema:
    """The columns of a source in their order."""

    fields: tuple[Field, ...]
    """The columns."""

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Read ``name TYPE [NOT NULL], ...``; DefinitionError names the column that is wrong."""
        if not text.strip():
            raise DefinitionError(
                "The schema is empty.", hint='list the columns: "carrier STRING, delay DOUBLE".'
            )
        return cls(require_distinct_fields(tuple(parse_field(part) for part in split_top_level(text))))

    @property
    def names(self) -> list[str]:
        """The columns' names that a definition may use."""
        return [field.name for field in self.fields if field.name != DERIVED_KIND]

    def field(self, name: str) -> Field | None:
        """Find a column as Spark does: by its name, whatever the case."""
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)

    def find_close_names(self, name: str) -> list[str]:
        """List the columns that somebody may have meant by a name that none has."""
        close = difflib.get_close_matches(name.lower(), [each.lower() for each in self.names], n=3)
        return [each for each in self.names if each.lower() in close]

    def with_(self, *fields: Field) -> Schema:
        """Add columns at the end."""
        return Schema((*self.fields, *fields))


def has_decimals(text: str) -> bool:
    """Return whether there is a DECIMAL in what may be a schema."""
    try:
        return any(field.type.decimals for field in Schema.parse(text).fields)
    except DefinitionError:
        return False


def require_distinct_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields; DefinitionError where two bear one name."""
    seen: dict[str, str] = {}
    for name in (field.name for field in fields):
        if name.lower() in seen:
            raise DefinitionError(
                f"Column {name!r} is declared twice (as {seen[name.lower()]!r} before).",
                hint="names must differ in more than upper and lower case: Spark ignores case.",
            )
        seen[name.lower()] = name
    return fields


NAMED = re.compile(r"(`[^`]+`|[^\s:]+)\s*[\s:]\s*(\S.*?)", re.ASCII | re.DOTALL)
NOT_NULL = re.compile(r"(.*\S)\s+NOT\s+NULL", re.IGNORECASE | re.DOTALL)
NAME = re.compile(r"(__)?[A-Za-z][A-Za-z0-9_]*", re.ASCII)
DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)
MOST_NESTED = 50
"""Types inside of types."""
SPELLED = re.compile(r"(\w+)\s*(\(([^()]*)\)|<(.*)>)?", re.ASCII | re.DOTALL)


def split_top_level(text: str) -> Iterator[str]:
    """Cut at the commas that stand between no brackets."""
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def measure_nesting(text: str) -> int:
    """Count how many brackets ``<`` are open at once at most."""
    return max(accumulate((letter == "<") - (letter == ">") for letter in text))


def parse_field(text: str) -> Field:
    """Read ``name TYPE [NOT NULL]``, or ``name: TYPE`` as inside of a STRUCT."""
    match = NAMED.fullmatch(text)
    if match is None:
        raise DefinitionError(f"{text!r} is not a column.", hint='write "name TYPE" or "name TYPE NOT NULL".')
    name, spelled = match[1].strip("`"), match[2]
    if name.startswith("_") and not NAME.fullmatch(name):
        raise DefinitionError(
            f"Column {name!r} starts with an underscore.",
            hint="such names are reserved for Seamline: rename it.",
        )
    if not NAME.fullmatch(name):
        raise DefinitionError(f"{name!r} is not a column name.", hint="use letters, digits and underscores.")
    required = NOT_NULL.fullmatch(spelled)
    return Field(name, parse_type(required[1] if required else spelled, name), nullable=required is None)


def parse_type(text: str, column: str) -> SqlType:
    """Read a type; ``column`` is named in the error."""
    if text.count("<") > MOST_NESTED and measure_nesting(text) > MOST_NESTED:
        raise DefinitionError(
            f"Column {column!r} nests more than {MOST_NESTED} types.",
            hint="declare what is deeper as STRING.",
        )
    match = SPELLED.fullmatch(text.strip())
    word = SYNONYMS.get(match[1].upper(), match[1].upper()) if match else ""
    if match and match[4] is not None:
        made = parse_nested_type(word, list(split_top_level(match[4])), column)
        if made is not None:
            return made
    elif match and word == "DECIMAL":
        digits = [each.strip() for each in (match[3] or "10,0").split(",")]
        if len(digits) <= 2 and all(map(DIGITS.fullmatch, digits)):
            precision, scale = map(int, [*digits, "0"][:2])
            return build_decimal_type(precision, scale)
    elif match and match[3] is None and word in TypeKind.__members__ and TypeKind[word] not in NESTED:
        return SqlType(TypeKind[word])
    raise DefinitionError(f"Column {column!r} has an unknown type {text!r}.", hint=f"use one of {TYPES}.")


def parse_nested_type(word: str, parts: list[str], column: str) -> SqlType | None:
    """Read what stands between < and >; None where no such type exists."""
    if word == "STRUCT":
        return SqlType(
            TypeKind.STRUCT, fields=require_distinct_fields(tuple(parse_field(part) for part in parts))
        )
    if word == "ARRAY" and len(parts) == 1:
        return SqlType(TypeKind.ARRAY, element=parse_type(parts[0], column))
    if word == "MAP" and len(parts) == 2 and parse_type(parts[0], column) == STRING:
        return SqlType(TypeKind.MAP, element=parse_type(parts[1], column))
    return None
