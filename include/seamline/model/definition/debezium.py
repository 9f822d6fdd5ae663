"""Change events as Debezium writes them: one envelope a record, around the row before and the row after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.format_base import Format
from seamline.model.errors import DefinitionError
from seamline.model.types.schema import BOOLEAN, STRING, Field, Schema, TypeKind

DELETED = "__deleted"
"""The column that says of a row that it was deleted, by the name that Debezium's own transform gives it."""
MARK = "__"
"""What the name of a column begins with that is none of the table's, but is told about the change."""
UNAVAILABLE = "__debezium_unavailable_value"
UNITS = {"milliseconds": 1_000, "microseconds": 1, "nanoseconds": -1_000}
"""What a number in a TIMESTAMP column may count, and by what it is multiplied to be microseconds; divided if less."""
CLOCKS = {"ts_ms": "milliseconds", "ts_us": "microseconds", "ts_ns": "nanoseconds"}
"""The units of the moments of an envelope, by how their names end."""
TEXTS = ("", "string")


@dataclass(frozen=True)
class Debezium(Format):
    """A change event of Debezium in JSON, with Kafka Connect's schema around it or without.

    A row has the columns of the changed table, and what ``__`` columns say of the change: ``__op``, ``__source_lsn``.
    What options leave open is read from the schema beside an event, where there is one, and else refused.
    """

    kind: ClassVar[str] = "debezium"
    textual: ClassVar[bool] = True
    timestamps: str = ""
    """What a number in a TIMESTAMP column counts: "milliseconds", "microseconds" or "nanoseconds"; "" for refused."""
    decimals: str = ""
    """ "string" where the connector has decimal.handling.mode=string; "" where a DECIMAL is no text."""
    full_before: bool = False
    """Whether ``before`` has the whole row, as with REPLICA IDENTITY FULL; else a deletion has its key alone."""
    unavailable: str = UNAVAILABLE
    """What the connector writes in place of a large value that it was not told: unavailable.value.placeholder."""

    def check(self, schema: Schema) -> None:
        if self.timestamps and self.timestamps not in UNITS:
            raise DefinitionError(
                f"{self.timestamps!r} is not a unit of timestamps.",
                hint=f"use one of {', '.join(UNITS)}, or leave it out.",
                field="timestamps",
            )
        if self.decimals not in TEXTS:
            raise DefinitionError(
                f"{self.decimals!r} does not say how decimals are written.",
                hint='write decimals="string" if the connector has decimal.handling.mode=string, or leave it out.',
                field="decimals",
            )
        if schema.field(DELETED) is None:
            raise DefinitionError(
                f"Column {DELETED} is not declared: without it deleted rows cannot be told from others.",
                hint=f"add {DELETED} BOOLEAN to schema=.",
            )
        for field in schema.fields:
            if field.name.startswith(MARK):
                check_told_column(field)


def check_told_column(field: Field) -> None:
    """Refuse a type in which nothing is told about a change."""
    name, type = field.name, field.type
    if type.nested or type.kind in (TypeKind.DATE, TypeKind.BINARY):
        raise DefinitionError(
            f"Column {name!r} is {type}, but facts about a change are texts, numbers or timestamps.",
            hint="declare it STRING or BIGINT.",
        )
    if type.kind is TypeKind.TIMESTAMP and find_unit(name) is None:
        raise DefinitionError(
            f"Column {name!r} is TIMESTAMP, but its name does not tell its unit.",
            hint=f"timestamps are in columns whose names end with {', '.join(CLOCKS)}; declare others BIGINT.",
        )


def find_unit(name: str) -> str | None:
    """Return the unit of a moment by the name of its column; None where that does not tell it."""
    return next((unit for end, unit in CLOCKS.items() if name.endswith(f"_{end}")), None)


def check_deleted_column(schema: Schema) -> None:
    """Refuse a column of deletions that is neither true nor false."""
    found = schema.field(DELETED)
    if found and (found.name != DELETED or found.type not in (BOOLEAN, STRING)):
        raise DefinitionError(
            f"Column {found.name!r} is {found.type}.",
            hint=f"declare {DELETED} BOOLEAN, or STRING: it is 'true' or 'false' then.",
        )
