"""Binary formats: each record is decoded in Python and judged as the JSON object that it stands for."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from seamline.kernel.formats.json import JsonReader


class DecodedReader(JsonReader):
    """``decode`` gives an object of Python values; types are then checked by the rules of JSON."""

    exact_texts = True
    parts = False

    def decode(self, value: bytes) -> Mapping[str, Any]:
        """Give a record's fields; raise anything where the bytes are no record."""
        raise NotImplementedError

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        read = [(None, None) if value is None else self.attempt(value) for value in values.to_pylist()]
        return {
            "_text": pa.array([text or "" for text, _ in read], pa.string()),
            "_trouble": pa.array([trouble for _, trouble in read], pa.string()),
        }

    def attempt(self, value: bytes) -> tuple[str | None, str | None]:
        """Give a record as JSON text, or say why it is none."""
        try:
            return json.dumps(self.decode(value), default=spelled, ensure_ascii=False), None
        except Exception as error:  # noqa: BLE001 - the decoders raise whatever the bytes lead them to
            return None, f"{type(error).__name__}: {error}"[:200]

    def broken(self) -> Iterator[tuple[str, str]]:
        yield "_trouble IS NOT NULL", "_trouble"
        yield from super().broken()


def spelled(value: Any) -> str:
    """Write what JSON has no type for as the text that its column is read from."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)
