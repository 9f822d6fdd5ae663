"""Binary formats: each record is decoded in Python and validated as the JSON object that it stands for."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from seamline.kernel.formats.decimals import decimal_sql
from seamline.kernel.formats.json import WHOLE, JsonReader
from seamline.lake.storage.exact_casts import KEPT
from seamline.model.types.schema import SqlType, TypeKind


class DecodedReader(JsonReader):
    """``decode`` returns an object of Python values; types are then checked by the rules of JSON.

    A double is a DECIMAL if so few digits spell it that it keeps them all.
    """

    exact_texts = True
    parts = False

    def decode(self, value: bytes) -> Mapping[str, Any]:
        """Return a record's fields; raise anything where the bytes are no record."""
        raise NotImplementedError

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        read = [(None, None) if value is None else self.try_decode(value) for value in values.to_pylist()]
        return {
            "_text": pa.array([text or "" for text, _ in read], pa.string()),
            "_trouble": pa.array([trouble for _, trouble in read], pa.string()),
        }

    def try_decode(self, value: bytes) -> tuple[str | None, str | None]:
        """Return a record as JSON text, or say why it is none."""
        try:
            return self.encode_record(self.decode(value)), None
        except Exception as error:  # noqa: BLE001 - the decoders raise whatever the bytes lead them to
            return None, f"{type(error).__name__}: {error}"[:200]

    def encode_record(self, found: Mapping[str, Any]) -> str:
        """Write a record's fields as JSON text."""
        if self.exact:
            found = box_decimal_bytes(found, self.whole)
        return json.dumps(found, default=encode_non_json_value, ensure_ascii=False)

    @cached_property
    def whole(self) -> SqlType:
        """The record as one value."""
        return SqlType(TypeKind.STRUCT, fields=self.schema.fields)

    def scalar_sql(self, type: SqlType, found: str, text: str) -> str:
        if type.kind is not TypeKind.DECIMAL or not self.exact:
            return super().scalar_sql(type, found, text)
        kept = f"len(trim(regexp_replace({text}, '[-.]|e.*', '', 'g'), '0')) <= {KEPT}"
        right = f"{found} IN {WHOLE} OR {found} = 'VARCHAR' OR {found} = 'DOUBLE' AND {kept}"
        return f"CASE WHEN {right} THEN {decimal_sql(type, text)} END"

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        yield "_trouble IS NOT NULL", "_trouble"
        yield from super().malformed_sql()


def box_decimal_bytes(value: Any, type: SqlType) -> Any:
    """Put bytes that are to be a DECIMAL into a list, which is none: their base64 may look like a number."""
    match type.kind, value:
        case TypeKind.DECIMAL, bytes():
            return [value]
        case TypeKind.STRUCT, Mapping():
            known = (each for each in type.fields if each.type.decimals and each.name in value)
            return {**value, **{each.name: box_decimal_bytes(value[each.name], each.type) for each in known}}
        case TypeKind.ARRAY, list() if type.element:
            return [box_decimal_bytes(each, type.element) for each in value]
        case TypeKind.MAP, Mapping() if type.element:
            return {name: box_decimal_bytes(each, type.element) for name, each in value.items()}
    return value


def encode_non_json_value(value: Any) -> str:
    """Write what JSON has no type for as the text that its column is read from."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)
