"""A definition as JSON Schema: the records that a source accepts, and the rows that a view presents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.definition.sources import DeltaSource, Source
from seamline.model.types.schema import TIMESTAMP, Field, SqlType, TypeKind, parse_type

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SPELLED = r"^-?\d+(\.\d+)?$"
TYPES: dict[TypeKind, dict[str, Any]] = {
    TypeKind.STRING: {"type": "string"},
    TypeKind.BOOLEAN: {"type": "boolean"},
    TypeKind.INT: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    TypeKind.BIGINT: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    TypeKind.DOUBLE: {"type": "number"},
    TypeKind.DATE: {"type": "string", "format": "date"},
    TypeKind.TIMESTAMP: {"type": "string", "format": "date-time"},
    TypeKind.BINARY: {"type": "string", "contentEncoding": "base64"},
}


def make_json_schema(pipeline: CompiledPipeline) -> dict[str, Any]:
    """Make the document: it takes a record of any source; the rows of views are among its definitions."""
    records = {name_records(each): make_record_schema(each) for each in pipeline.by_source}
    rows = {f"{view.name}.row": make_row_schema(view) for view in pipeline.views}
    return {
        "$schema": DIALECT,
        "$id": f"urn:seamline:{pipeline.name}",
        "title": pipeline.name,
        **({"description": text} if (text := pipeline.definition.description) else {}),
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in records],
        "$defs": {**records, **rows},
    }


def name_records(alone: CompiledPipeline) -> str:
    """Name the records of one source."""
    return f"{name_origin(alone.source)}.record"


def name_origin(source: Source) -> str:
    """Name what one source reads: by its own name, or by its first topic, or by the folder of its table."""
    if isinstance(source, DeltaSource):
        return source.name or source.table.rstrip("/").rsplit("/", 1)[-1]
    return source.name or source.topics[0]


def make_record_schema(alone: CompiledPipeline) -> dict[str, Any]:
    """Make the schema of the records of one source; other members are ignored."""
    fields = alone.record.parsed.fields
    properties = {each.name: make_field_schema(each, alone.required, alone.exact) for each in fields}
    required = [each.name for each in fields if each.name in alone.required]
    return {
        "title": f"A record of {', '.join(alone.source.topics)}",
        "type": "object",
        "properties": properties,
        "required": required,
    }


def make_field_schema(field: Field, required: frozenset[str], exact: bool) -> dict[str, Any]:
    """Make the schema of a column."""
    return make_type_schema(field.type, exact, nullable=field.name not in required)


def make_type_schema(type: SqlType, exact: bool, *, nullable: bool) -> dict[str, Any]:
    """Make the schema of a type; ``exact`` DECIMALs may be spelled as text."""
    match type.kind:
        case TypeKind.DECIMAL:
            made: dict[str, Any] = {"type": ["number", "string"] if exact else "number"}
            made |= {"pattern": SPELLED} if exact else {}
        case TypeKind.STRUCT:
            parts = {
                each.name: make_type_schema(each.type, exact, nullable=each.nullable) for each in type.fields
            }
            needed = [each.name for each in type.fields if not each.nullable]
            made = {"type": "object", "properties": parts, "required": needed}
        case TypeKind.ARRAY | TypeKind.MAP:
            assert type.element
            inner = make_type_schema(type.element, exact, nullable=True)
            list_like = type.kind is TypeKind.ARRAY
            made = (
                {"type": "array", "items": inner}
                if list_like
                else {"type": "object", "additionalProperties": inner}
            )
        case _:
            made = dict(TYPES[type.kind])
    if nullable:
        own = made["type"]
        made["type"] = [*(own if isinstance(own, list) else [own]), "null"]
    return made


def make_row_schema(view: CompiledView) -> dict[str, Any]:
    """Make the schema of the rows that a view presents, as JSON has them."""
    fields = list(list_row_fields(view))
    return {
        "title": f"A row of {view.qualified}",
        "type": "object",
        "properties": {each.name: make_field_schema(each, PLACED, exact=True) for each in fields},
        "required": [each.name for each in fields],
    }


def list_row_fields(view: CompiledView) -> Iterator[Field]:
    """List the keys, the window's bounds and the measures of a presented row."""
    yield from view.keys
    for name in sorted(PLACED, reverse=True):
        yield Field(name, TIMESTAMP, nullable=False)
    for each in view.measures:
        yield Field(each.name, parse_type(each.result, each.name))


PLACED = frozenset({"window_start", "window_end"})
"""What no row is without."""
