"""Whether a message of protobuf reads what another schema has written: field by field, by their numbers.

Stricter than protobuf's own reader, which cuts off what is too large for a field and takes the last value of several:
such a value would be another one, and nobody would know.
"""

from __future__ import annotations

from typing import Any

from seamline.model.schemas.proto_text import ProtoField, ProtoFile, ProtoMessage, parse_proto
from seamline.model.schemas.writer_schema import WriterSchema

READS = {
    "int64": {"int32", "uint32", "bool", "enum"},
    "int32": {"bool", "enum"},
    "uint64": {"uint32", "bool"},
    "uint32": {"bool"},
    "sint64": {"sint32"},
    "bytes": {"string"},
    "enum": {"int32"},
}
"""What a type reads beside itself and keeps as it was."""
SCALARS = {
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes"),
    *("uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
}
KINDS = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group"),
    *("message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
"""The kinds of fields by the numbers that descriptors have for them."""


def read_proto_schema(schema: WriterSchema) -> ProtoFile:
    """Read a writer's schema with the types that it builds upon; ValueError where it cannot be read."""
    made = parse_proto(schema.text)
    for each in schema.references:
        made.types = {**parse_proto(each.text).types, **made.types}
    return made


def find_message_conflict(writer: ProtoFile, path: tuple[int, ...], reader: Any) -> str:
    """Say why a message at a path of the writer's file cannot be read as a descriptor has it; empty if it can."""
    found = writer.find_message(path)
    if found is None:
        return f"has no message at {'.'.join(map(str, path))}"
    if found.name != reader.full_name:
        return f"is of {found.name}, not of {reader.full_name}"
    return find_fields_conflict(writer, found, reader, set())


def find_fields_conflict(
    file: ProtoFile, written: ProtoMessage, reader: Any, compared: set[tuple[str, str]]
) -> str:
    """Say which field of a message cannot be read; ``compared`` are pairs of messages that need no other look."""
    if (pair := (written.name, reader.full_name)) in compared:
        return ""
    compared.add(pair)
    for number, field in written.fields.items():
        known = reader.fields_by_number.get(number)
        if known is not None and (why := find_field_conflict(file, written, field, known, compared)):
            return why
    return ""


def find_field_conflict(
    file: ProtoFile, written: ProtoMessage, field: ProtoField, known: Any, compared: set[tuple[str, str]]
) -> str:
    """Say why one field cannot be read."""
    place = f"field {field.number} of {written.name}"
    mapped = known.message_type is not None and known.message_type.GetOptions().map_entry
    if mapped or field.type.startswith("map<"):
        if not (mapped and field.type.startswith("map<")):
            return f"{place} is {field.type}, not {describe_field(known)}"
        key, value = field.type[4:-1].split(",", 1)
        entry = known.message_type.fields_by_name
        return find_type_conflict(file, written, key, entry["key"], place, compared) or find_type_conflict(
            file, written, value, entry["value"], place, compared
        )
    if field.repeated and not known.is_repeated:
        return f"{place} is repeated, not one {describe_field(known)}"
    return find_type_conflict(file, written, field.type, known, place, compared)


def find_type_conflict(
    file: ProtoFile, written: ProtoMessage, type: str, known: Any, place: str, compared: set[tuple[str, str]]
) -> str:
    """Say why a value of a type cannot be read as a field has it."""
    found = None if type in SCALARS else file.find_type(type, written.name)
    kind = KINDS[known.type]
    if kind == "message" and type not in SCALARS:
        if found is not None and not found.enum:
            return find_fields_conflict(file, found, known.message_type, compared)
        # A type of protobuf's own is in no registry.
        same = found is None and type.rpartition(".")[2] == known.message_type.name
        return "" if same else f"{place} is {type}, not {describe_field(known)}"
    named = "enum" if found is None or found.enum else "message"
    mine = type if type in SCALARS else named
    return (
        ""
        if mine == kind or mine in READS.get(kind, ())
        else f"{place} is {type}, not {describe_field(known)}"
    )


def describe_field(known: Any) -> str:
    """Name the type of a reader's field."""
    named = known.message_type or known.enum_type
    return named.full_name if named else KINDS[known.type]
