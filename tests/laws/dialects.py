"""The same record in each format, under any names."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastavro import schemaless_writer
from google.protobuf import descriptor_pb2

from seamline import Avro, Csv, Protobuf, Text
from seamline.model.definition.format_base import Format

FLAT = ("key", "other", "whole", "real", "text", "spare")
Names = Mapping[str, str]


@dataclass(frozen=True)
class Dialect:
    """A format over these names, and how a record is written in it; ``flat`` has no column with parts."""

    format: Callable[[Names], str | Format]
    write: Callable[[Mapping[str, Any], Names], bytes]
    flat: bool = False


def columns(names: Names) -> list[str]:
    """List the flat columns in the order of the schema."""
    return [*(names[role] for role in FLAT), "occurred"]


def as_csv(record: Mapping[str, Any], names: Names) -> bytes:
    """Write a line of cells."""
    out = io.StringIO()
    csv.writer(out).writerow(["" if record[name] is None else record[name] for name in columns(names)])
    return out.getvalue().strip().encode()


def pattern(names: Names) -> Text:
    """Write the pattern of a line whose groups are the columns."""
    return Text(pattern=r"\|".join(f"(?P<{name}>[^|]*)" for name in columns(names)))


def as_text(record: Mapping[str, Any], names: Names) -> bytes:
    """Write a line for the pattern."""
    return "|".join("" if record[name] is None else str(record[name]) for name in columns(names)).encode()


def avro_schema(names: Names) -> dict[str, Any]:
    """Write the writer's schema."""
    kinds = dict(zip(FLAT, ("string", "string", "long", "double", "string", "string"), strict=True))
    fields: list[dict[str, Any]] = [{"name": names[role], "type": ["null", kinds[role]]} for role in FLAT]
    inner = {"type": "record", "name": "Inner", "fields": [{"name": names["member"], "type": "int"}]}
    fields += [
        {"name": names["items"], "type": {"type": "array", "items": "string"}},
        {"name": names["parts"], "type": inner},
        {"name": "occurred", "type": "string"},
    ]
    return {"type": "record", "name": "Outer", "fields": fields}


def as_avro(record: Mapping[str, Any], names: Names) -> bytes:
    """Write a record in the plain binary encoding."""
    out = io.BytesIO()
    schemaless_writer(out, avro_schema(names), dict(record))
    return out.getvalue()


def message(names: Names) -> Protobuf:
    """Describe a message whose fields can be absent."""
    kind = descriptor_pb2.FieldDescriptorProto
    kinds = dict(
        zip(
            FLAT,
            (
                kind.TYPE_STRING,
                kind.TYPE_STRING,
                kind.TYPE_INT64,
                kind.TYPE_DOUBLE,
                kind.TYPE_STRING,
                kind.TYPE_STRING,
            ),
            strict=True,
        )
    )
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto2")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name=names["member"], number=1, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
    outer = file.message_type.add(name="Outer")
    for number, role in enumerate(FLAT, 1):
        outer.field.add(name=names[role], number=number, type=kinds[role], label=kind.LABEL_OPTIONAL)
    outer.field.add(name=names["items"], number=8, type=kind.TYPE_STRING, label=kind.LABEL_REPEATED)
    outer.field.add(
        name=names["parts"],
        number=9,
        type=kind.TYPE_MESSAGE,
        label=kind.LABEL_OPTIONAL,
        type_name=".m.Inner",
    )
    outer.field.add(name="occurred", number=10, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    return Protobuf(base64.b64encode(files.SerializeToString()).decode(), "m.Outer")


def as_message(record: Mapping[str, Any], names: Names) -> bytes:
    """Write a message; what is None is absent."""
    given = {name: value for name, value in record.items() if value is not None}
    return bytes(message(names).type(**given).SerializeToString())


DIALECTS = {
    "json": Dialect(lambda names: "json", lambda record, names: json.dumps(record).encode()),
    "csv": Dialect(lambda names: Csv(), as_csv, flat=True),
    "text": Dialect(pattern, as_text, flat=True),
    "avro": Dialect(lambda names: Avro(json.dumps(avro_schema(names))), as_avro),
    "protobuf": Dialect(message, as_message),
}
