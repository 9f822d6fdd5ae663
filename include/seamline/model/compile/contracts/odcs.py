"""A definition as a contract of the Open Data Contract Standard, 3.1: topics and views with their columns."""

from __future__ import annotations

import re
from typing import Any

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.compiled_view import CompiledView
from seamline.model.compile.contracts.json_schema import PLACED, list_row_fields, name_origin
from seamline.model.definition.sources import DeltaSource
from seamline.model.types.schema import Field, SqlType, TypeKind

STANDARD = "v3.1.0"
FIRST = "1.0.0"
TOPIC, TABLE, VIEW = "topic", "table", "view"
LOGICAL = {
    TypeKind.STRING: "string",
    TypeKind.BOOLEAN: "boolean",
    TypeKind.INT: "integer",
    TypeKind.BIGINT: "integer",
    TypeKind.DOUBLE: "number",
    TypeKind.DECIMAL: "number",
    TypeKind.DATE: "date",
    TypeKind.TIMESTAMP: "timestamp",
    TypeKind.BINARY: "string",
    TypeKind.STRUCT: "object",
    TypeKind.ARRAY: "array",
    TypeKind.MAP: "object",
}
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def make_odcs(pipeline: CompiledPipeline, version: str = FIRST) -> dict[str, Any]:
    """Make the contract, as a version of it."""
    definition = pipeline.definition
    topics = [make_topic(each) for each in pipeline.by_source]
    views = [make_view(pipeline, each) for each in pipeline.views]
    fresh = definition.batch.fresh_within
    return {
        "apiVersion": STANDARD,
        "kind": "DataContract",
        "id": f"urn:seamline:{pipeline.name}",
        "name": pipeline.name,
        "version": version,
        "status": "active",
        **({"description": {"purpose": definition.description}} if definition.description else {}),
        **({"tags": list(definition.tags)} if definition.tags else {}),
        "schema": [*topics, *views],
        **({"slaProperties": [describe_freshness(fresh)]} if fresh else {}),
    }


def describe_freshness(within: str) -> dict[str, Any]:
    """Say how long after its end an interval is published at the latest."""
    amount, unit = within.split(maxsplit=1)
    return {"property": "latency", "value": int(amount) if amount.isdigit() else amount, "unit": unit}


def make_topic(alone: CompiledPipeline) -> dict[str, Any]:
    """Describe the records of one source: what a producer may send."""
    source = alone.source
    ids = list(source.event_id)
    properties = [
        make_property(each, required=each.name in alone.required, key=place_of(each.name, ids))
        for each in alone.record.parsed.fields
    ]
    rules = [
        {"type": "text", "name": rule.name, "description": condition.text} for rule, condition in alone.rules
    ]
    told = {"format": alone.format.kind, "event_time": source.event_time}
    return {
        "name": name_origin(source),
        "physicalName": source.table if isinstance(source, DeltaSource) else ", ".join(source.topics),
        "physicalType": TABLE if isinstance(source, DeltaSource) else TOPIC,
        "logicalType": "object",
        "properties": properties,
        **({"quality": rules} if rules else {}),
        "customProperties": [{"property": name, "value": value} for name, value in told.items()],
    }


def make_view(pipeline: CompiledPipeline, view: CompiledView) -> dict[str, Any]:
    """Describe the rows of a view: what a reader may count on."""
    ids = [*(key.name for key in view.keys), *sorted(PLACED, reverse=True)]
    grain = ", ".join(key.name for key in view.keys) or "all rows"
    return {
        "name": f"{view.name} rows",
        "physicalName": view.qualified,
        "physicalType": VIEW,
        "logicalType": "object",
        "dataGranularityDescription": f"{grain}, {view.window}",
        "properties": [
            make_property(each, required=not each.nullable, key=place_of(each.name, ids))
            for each in list_row_fields(view)
        ],
        "customProperties": [{"property": "window", "value": str(view.window)}],
    }


def place_of(name: str, ids: list[str]) -> int:
    """Return the place of a column in a key, from 1; 0 where it is none of it."""
    return ids.index(name) + 1 if name in ids else 0


def make_property(field: Field, *, required: bool, key: int = 0) -> dict[str, Any]:
    """Describe a column."""
    return {
        "name": field.name,
        **make_type(field.type),
        **({"required": True} if required else {}),
        **({"primaryKey": True, "primaryKeyPosition": key} if key else {}),
    }


def make_type(type: SqlType) -> dict[str, Any]:
    """Describe a type, with its parts."""
    made: dict[str, Any] = {"logicalType": LOGICAL[type.kind], "physicalType": type.spark}
    if type.kind is TypeKind.STRUCT:
        made["properties"] = [make_property(each, required=not each.nullable) for each in type.fields]
    if type.kind is TypeKind.ARRAY:
        assert type.element
        made["items"] = make_type(type.element)
    return made


def raise_version(version: str, *, broken: bool) -> str:
    """Return the version that follows: a major one where promises are broken, else a minor one."""
    match = VERSION.fullmatch(version)
    major, minor = (int(match[1]), int(match[2])) if match else (1, 0)
    return f"{major + 1}.0.0" if broken else f"{major}.{minor + 1}.0"
