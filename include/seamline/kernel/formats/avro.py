"""Avro: single records in the plain binary encoding, written with the schema of the definition."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from fastavro import _read_py, parse_schema, schemaless_reader

from seamline.kernel.formats.decoded import DecodedReader
from seamline.model.definition.format_base import Format
from seamline.model.types.schema import Schema

CONFLUENT = 5


class AvroReader(DecodedReader):
    """Decodes with fastavro; bytes left over mean that another schema wrote them."""

    empty = True

    def __init__(self, format: Format, schema: Schema, added: int = 0) -> None:
        super().__init__(format, schema, added)
        self.written = parse_schema(json.loads(self.format.schema))
        # The compiled reader overruns its stack at some thousand levels, and takes the process with it.
        self.read = _read_py.schemaless_reader if is_recursive_schema(self.written) else schemaless_reader

    def decode(self, value: bytes) -> Mapping[str, Any]:
        start = 0
        if self.format.confluent:
            if len(value) < CONFLUENT or value[0]:
                raise ValueError("does not begin with 0 and the number of a schema")
            start = CONFLUENT
        stream = io.BytesIO(value)
        stream.seek(start)
        found = self.read(stream, self.written, None)
        if left := len(value) - stream.tell():
            raise ValueError(f"{left} bytes left over")
        wanted = {field.name for field in self.schema.fields}
        return {name: each for name, each in found.items() if name in wanted}  # type: ignore[union-attr]


def is_recursive_schema(schema: Any, around: frozenset[str] = frozenset()) -> bool:
    """Return whether a parsed schema has a record within itself, so that a value may be of any depth."""
    if isinstance(schema, str):
        return schema in around
    if isinstance(schema, list):
        return any(is_recursive_schema(each, around) for each in schema)
    if schema["type"] == "record":
        inside = around | {schema["name"]}
        return any(is_recursive_schema(field["type"], inside) for field in schema["fields"])
    return any(
        is_recursive_schema(schema[part], around) for part in ("items", "values", "type") if part in schema
    )
