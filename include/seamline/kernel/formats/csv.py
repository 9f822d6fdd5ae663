"""CSV: one line, cells in the order of the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import pyarrow as pa

from seamline.kernel.formats.cells import CellReader
from seamline.kernel.formats.reader import decode_utf8_column

CELLS = pa.list_(pa.string())
csv.field_size_limit(2**31 - 1)  # Kafka bounds a record; the module's own bound is 128 KiB.


class CsvReader(CellReader):
    """Cuts each record with Python's ``csv``; a line end inside quotes belongs to its cell."""

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        found = decode_utf8_column(values)
        cut = [(None, None) if text is None else self.split_line(text) for text in found.to_pylist()]
        return {
            "_text": found,
            "_cells": pa.array([cells for cells, _ in cut], CELLS),
            "_trouble": pa.array([trouble for _, trouble in cut], pa.string()),
        }

    def split_line(self, text: str) -> tuple[list[str | None] | None, str | None]:
        """Return the cells of a line, or why it is none."""
        line = text.removesuffix("\n").removesuffix("\r")
        try:
            rows = list(
                csv.reader(
                    io.StringIO(line, newline=""),
                    delimiter=self.format.delimiter,
                    quotechar=self.format.quote,
                    strict=True,
                )
            )
        except csv.Error as error:
            return None, str(error)
        wanted = len(self.schema.fields)
        if len(rows) != 1:
            return None, f"{len(rows)} lines, not 1"
        if not wanted - self.added <= len(rows[0]) <= wanted:
            least = f"{wanted - self.added} to " if self.added else ""
            return None, f"{len(rows[0])} cells, not {least}{wanted}"
        return [None if cell == self.format.null else cell for cell in rows[0]], None
