"""Plain text: named groups of a regular expression that matches the whole record."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.formats.cells import CellReader
from seamline.kernel.formats.reader import decode_utf8_column
from seamline.model.definition.format_base import Format
from seamline.model.types.schema import Schema


class TextReader(CellReader):
    """Matches with RE2 through Arrow; a line end after the text is not part of it."""

    def __init__(self, format: Format, schema: Schema, added: int = 0) -> None:
        super().__init__(format, schema, added)
        self.pattern = rf"\A(?:{self.format.pattern})(?:\r?\n)?\z"

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        found = decode_utf8_column(values)
        groups = pc.extract_regex(found, self.pattern).combine_chunks()
        cells = [empty_to_none(pc.struct_field(groups, field.name)) for field in self.schema.fields]
        rows = pc.is_valid(groups)
        lists = pa.array(
            [list(row) if matched else None for matched, *row in zip(rows.to_pylist(), *cells, strict=True)],
            pa.list_(pa.string()),
        )
        return {"_text": found, "_cells": lists, "_trouble": pa.nulls(len(found), pa.string())}


def empty_to_none(group: pa.Array) -> list[str | None]:
    """Return a group's texts; one that matched nothing is None."""
    return [each or None for each in group.to_pylist()]
