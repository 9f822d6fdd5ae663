"""Debezium's change events: the row is in the envelope, and types are written as Kafka Connect writes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from seamline.kernel.formats.connect_types import (
    CODES,
    SCHEMA,
    code_sql,
    coded_decimal_sql,
    coded_moment_sql,
    day_sql,
    moment_sql,
)
from seamline.kernel.formats.deletions import WRAPPED, DeletionReader
from seamline.kernel.formats.exact import ExactJsonReader
from seamline.kernel.formats.json import WHOLE, JsonReader, Place
from seamline.kernel.formats.reader import SHOWN, cast_text_sql
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.definition.debezium import CLOCKS, DELETED, MARK, find_unit
from seamline.model.types.schema import BOOLEAN, TIMESTAMP, Field, SqlType, TypeKind

CODED = (TypeKind.TIMESTAMP, TypeKind.DECIMAL)
"""What is read by the schema beside an event, where there is one."""
ROW, GONE = "('c', 'u', 'r')", "'d'"
ENVELOPE = {"op", *CLOCKS}
"""What is told beside the row, and not about its source."""
REFUSED = {
    "t": ("truncate", "a change of all rows of a table changes none of them by its key"),
    "m": ("logical message", "a message of the database is no change of a row"),
}
FULL = "set REPLICA IDENTITY FULL for the table, or leave the column out of the schema"


class EnvelopeReader(DeletionReader):
    """Opens the envelope, and takes the row of ``after``; of a deletion it takes the key, or all of ``before``."""

    def open_record(self) -> Iterator[str]:
        own = {"op": "VARCHAR", "before": "JSON", "after": "JSON", "ddl": "VARCHAR", "tableChanges": "JSON"}
        own |= self.told_shape
        shape = {WRAPPED: own, **own, **({"schema": SCHEMA} if self.coded else {})}
        yield f"{self.shaped_sql(self.valid_sql('_text'), shape)} AS _envelope"
        yield "_envelope.op IS NULL AND _envelope.payload.op IS NOT NULL AS _wrapped"
        yield ", ".join(
            f"CASE WHEN _wrapped THEN _envelope.{WRAPPED}.{name} ELSE _envelope.{name} END AS _e_{name}"
            for name in own
        )
        yield f"_value IS NULL OR coalesce(_e_op = {GONE}, false) AS _gone"
        yield self.read_key_sql()
        yield self.read_before_sql()
        if self.coded:
            yield f"{CODES} AS _codes"
        deleted = self.join_key_sql()
        if self.format.full_before:
            deleted = f"coalesce(_e_before, {deleted})"
        yield f"CASE WHEN _gone THEN {deleted} WHEN _e_op IN {ROW} THEN _e_after END AS _json"

    @cached_property
    def coded(self) -> bool:
        """Return whether there are columns whose numbers and texts mean what the schema beside an event says."""
        return any(each.type.kind in CODED and not each.name.startswith(MARK) for each in self.schema.fields)

    @cached_property
    def told_shape(self) -> dict[str, Any]:
        """Name what the columns with the mark are told."""
        found: dict[str, Any] = {}
        for first, *inner in map(told_path, self.told):
            found |= {first: {**found.get(first, {}), inner[0]: "VARCHAR"} if inner else "VARCHAR"}
        return found

    @cached_property
    def told(self) -> list[str]:
        """List the columns that are told about the change, but for whether it is a deletion."""
        return [
            each.name for each in self.schema.fields if each.name.startswith(MARK) and each.name != DELETED
        ]

    def read_before_sql(self) -> str:
        """Write ``_b``: the columns of the key in the row before it was deleted."""
        columns = dict.fromkeys(self.key, "JSON")
        return f"{self.shaped_sql('CASE WHEN _gone THEN _e_before END', columns)} AS _b"

    def key_texts(self) -> dict[str, str]:
        return {
            name: f"coalesce(_b.{quote_identifier(name)}, {text})"
            for name, text in super().key_texts().items()
        }

    def refused_sql(self) -> Iterator[tuple[str, str, str]]:
        for op, (reason, detail) in REFUSED.items():
            yield f"_e_op = {quote_literal(op)}", reason, quote_literal(detail)
        yield (
            "_e_op IS NULL AND (_e_ddl IS NOT NULL OR _e_tableChanges IS NOT NULL)",
            "schema change",
            "coalesce(left(_e_ddl, 120), '')",
        )
        known = ", ".join(map(quote_literal, ["c", "u", "r", "d", *REFUSED]))
        yield f"_e_op NOT IN ({known})", "unknown op", f"left(_e_op, {SHOWN})"
        for at, field in enumerate(self.schema.fields, 1):
            if (when := self.unavailable_sql(field, at)) and not field.name.startswith(MARK):
                yield when, f"unavailable value {field.name}", quote_literal(FULL)

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        yield "_value IS NOT NULL AND _e_op IS NULL", f"'no op, so no envelope: ' || left(_text, {SHOWN})"
        yield "_json IS NULL", "'no row for op ' || _e_op"
        yield from super().malformed_sql()

    def unavailable_sql(self, field: Field, at: int) -> str:
        """Write whether the value of a column was too large to be told; empty where no such value can be."""
        text, placeholder = self.text_sql(field, at), self.format.unavailable
        match field.type.kind:
            case TypeKind.STRING:
                return f"{text} = {quote_literal(placeholder)}"
            case TypeKind.BINARY:
                return f"{text} = {quote_literal(base64.b64encode(placeholder.encode()).decode())}"
            case TypeKind.ARRAY:
                lists = [placeholder], list(placeholder.encode())
                spelled = (quote_literal(json.dumps(each, separators=(",", ":"))) for each in lists)
                return f"{text} IN ({', '.join(spelled)})"
        return ""

    def value_sql(self, field: Field, at: int) -> str:
        if field.name == DELETED:
            return self.told_sql(field)
        if field.name.startswith(MARK):
            return self.told_value_sql(field)
        made = super().value_sql(field, at)
        unavailable = self.unavailable_sql(field, at)
        return f"CASE WHEN ({unavailable}) IS NOT TRUE THEN {made} END" if unavailable else made

    def told_value_sql(self, field: Field) -> str:
        """Write what is told about a change in the type of its column."""
        text = told_sql(field.name)
        if field.type == TIMESTAMP:
            return moment_sql(text, find_unit(field.name) or "")
        if field.type == BOOLEAN:
            return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"
        return text if field.type.kind is TypeKind.STRING else cast_text_sql(field.type, text)

    def absent_sql(self, field: Field, at: int, *, null: bool) -> tuple[str, str]:
        if field.name.startswith(MARK):
            return (f"{told_sql(field.name)} IS NULL" if field.name != DELETED else "false"), "''"
        return super().absent_sql(field, at, null=null)

    def mistyped_sql(self, field: Field, at: int) -> tuple[str, str]:
        if field.name == DELETED:
            return "false", "''"
        if field.name.startswith(MARK):
            text = told_sql(field.name)
            said = f"left({text}, {SHOWN}) || {quote_literal(f' is no {field.type.spark}')}"
            return f"{quote_identifier(field.name)} IS NULL AND {text} IS NOT NULL", said
        when, detail = super().mistyped_sql(field, at)
        return when, detail + self.hint_sql(field)

    def hint_sql(self, field: Field) -> str:
        """Write what may help where a value is of another type than its column."""
        if field.type.kind is TypeKind.TIMESTAMP and not self.format.timestamps:
            return " || ': timestamps= of the format says what numbers count'"
        if field.type.kind is TypeKind.DECIMAL and not self.format.decimals:
            return """ || ': set decimal.handling.mode=string and write decimals="string"' """
        return ""

    def typed_sql(self, type: SqlType, place: Place, depth: int = 0) -> str:
        made = super().typed_sql(type, place, depth)
        if len(place.path) != 1 or type.kind not in CODED:
            return made
        code = code_sql(place.path[0])
        if type.kind is TypeKind.TIMESTAMP:
            return coded_moment_sql(place.found, place.text, code, made)
        return coded_decimal_sql(type, place.found, place.text, code, texts=bool(self.format.decimals))

    def scalar_sql(self, type: SqlType, found: str, text: str) -> str:
        match type.kind:
            case TypeKind.DATE:
                spelled = cast_text_sql(type, f"rtrim({text}, 'Z')")
                return f"CASE WHEN {found} IN {WHOLE} THEN {day_sql(text)} WHEN {found} = 'VARCHAR' THEN {spelled} END"
            case TypeKind.TIMESTAMP if self.format.timestamps:
                counted = moment_sql(text, self.format.timestamps)
                return f"CASE WHEN {found} IN {WHOLE} THEN {counted} ELSE {super().scalar_sql(type, found, text)} END"
            case TypeKind.DECIMAL if not self.format.decimals:
                return f"CASE WHEN {found} <> 'VARCHAR' THEN {super().scalar_sql(type, found, text)} END"
        return super().scalar_sql(type, found, text)


def told_path(name: str) -> tuple[str, ...]:
    """Return where something is told, from the name that ExtractNewRecordState gives it with add.fields."""
    told = name.removeprefix(MARK)
    for part in ("source", "transaction"):
        if told.startswith(f"{part}_") and len(told) > len(part) + 1:
            return part, told.removeprefix(f"{part}_")
    return (told,) if told in ENVELOPE else ("source", told)


def told_sql(name: str) -> str:
    """Write the text of what is told."""
    first, *inner = told_path(name)
    return ".".join([f"_e_{first}", *map(quote_identifier, inner)])


class DebeziumReader(EnvelopeReader, JsonReader):
    """Reads change events."""


class ExactDebeziumReader(EnvelopeReader, ExactJsonReader):
    """Reads change events, numbers by their digits."""

    @cached_property
    def alike(self) -> dict[SqlType, list[tuple[str, ...]]]:
        """None: each is read by how Kafka Connect has written it."""
        return {}
