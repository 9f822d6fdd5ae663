"""Protobuf: single messages of a type from a descriptor file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from seamline.kernel.formats.decoded import DecodedReader

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)


class ProtobufReader(DecodedReader):
    """Decodes with Google's library. A field that is not set is null where it can be distinguished from its default."""

    empty = True

    def decode(self, value: bytes) -> Mapping[str, Any]:
        made = self.format.type()
        made.ParseFromString(value)
        if missing := made.FindInitializationErrors():
            raise ValueError(f"{', '.join(missing)} not set")
        by_name = made.DESCRIPTOR.fields_by_name
        return {field.name: decode_field(made, by_name[field.name]) for field in self.schema.fields}


def decode_field(message: Any, field: FieldDescriptor) -> Any:
    """Return a field's value as plain Python."""
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        held = field.message_type.fields_by_name["value"]
        return {encode_map_key(key): decode_field_value(value[key], held) for key in value}
    if is_repeated_field(field):
        return [decode_field_value(each, field) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return decode_field_value(value, field)


def is_repeated_field(field: FieldDescriptor) -> bool:
    """Return whether a field has several values."""
    return bool(field.is_repeated)


def decode_field_value(value: Any, field: FieldDescriptor) -> Any:
    """Return one value: a message as its fields, an enum's by name, an instant as one."""
    if field.message_type is not None:
        name = field.message_type.full_name
        if name == "google.protobuf.Timestamp":
            return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        if name in WRAPPERS:
            return value.value
        return {each.name: decode_field(value, each) for each in field.message_type.fields}
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return value


def encode_map_key(key: Any) -> str:
    """Write a map's key as JSON does."""
    return str(key).lower() if isinstance(key, bool) else str(key)
