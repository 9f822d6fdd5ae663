"""What a definition makes of the bytes that a writer's schema has made: a function for each schema."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from fastavro import _read_py, parse_schema, schemaless_reader
from fastavro.read import SchemaResolutionError

from seamline.kernel.formats.avro import is_recursive_schema
from seamline.model.definition.formats import Avro, Protobuf
from seamline.model.schemas.proto_resolution import find_message_conflict, read_proto_schema
from seamline.model.schemas.proto_text import ProtoFile
from seamline.model.schemas.wire_format import HEADER, read_message_path
from seamline.model.schemas.writer_schema import Incompatible, WriterSchema, require_kind

MOST = 500
"""Schemas that a process knows how to read at a time."""
Find = Callable[[bytes], Mapping[str, Any]]
"""Decodes a value with its header; raises ``Incompatible``, or anything where the bytes are no record."""
Locate = Callable[[bytes], int]
"""Returns where the message of a value with its header begins; raises ``Incompatible``, or ValueError."""


@lru_cache(maxsize=MOST)
def open_avro_writer(format: Avro, schema: WriterSchema) -> Find:
    """Make the function that reads what a schema of Avro has written, as the format has it; Incompatible."""
    require_kind(format.kind, schema)
    known: dict[str, Any] = {}
    try:
        around = [parse_schema(json.loads(each.text), known) for each in schema.references]
        written = parse_schema(json.loads(schema.text), known)
    except Exception as error:  # noqa: BLE001 - the parser has no common error
        raise Incompatible(f"cannot be read: {type(error).__name__}: {error}") from None
    wanted = parse_schema(json.loads(format.schema))
    # The compiled reader overruns its stack at some thousand levels, and takes the process with it.
    deep = any(map(is_recursive_schema, [*around, written, wanted]))
    read = _read_py.schemaless_reader if deep else schemaless_reader
    same = strip_schema(written) == strip_schema(wanted) and not around
    return partial(find_avro_record, read, written, None if same else wanted)


def strip_schema(schema: Any) -> Any:
    """Return a parsed schema without what its parser remembers of it."""
    own = {"__fastavro_parsed", "__named_schemas"}
    return (
        {name: each for name, each in schema.items() if name not in own} if type(schema) is dict else schema
    )


def find_avro_record(read: Any, written: Any, wanted: Any, value: bytes) -> Mapping[str, Any]:
    """Decode one value."""
    stream = io.BytesIO(value)
    stream.seek(HEADER)
    try:
        found = read(stream, written, wanted)
    except SchemaResolutionError as error:
        raise Incompatible(str(error)) from None
    if left := len(value) - stream.tell():
        raise ValueError(f"{left} bytes left over")
    if not isinstance(found, dict):
        raise Incompatible("is of no record")
    return found


@lru_cache(maxsize=MOST)
def open_protobuf_writer(format: Protobuf, schema: WriterSchema) -> Locate:
    """Make the function that finds the message in what a schema of protobuf has written; Incompatible."""
    require_kind(format.kind, schema)
    try:
        file = read_proto_schema(schema)
    except ValueError as error:
        raise Incompatible(f"cannot be read: it {error}") from None
    compared = lru_cache(maxsize=MOST)(partial(compare_message, format, file))

    def locate(value: bytes) -> int:
        path, start = read_message_path(value)
        if why := compared(path):
            raise Incompatible(why)
        return start

    return locate


def compare_message(format: Protobuf, file: ProtoFile, path: tuple[int, ...]) -> str:
    """Say why a message of a writer's file cannot be read; empty if it can."""
    return find_message_conflict(file, path, format.type.DESCRIPTOR)
