"""The keys and values of rows in Redis, made column by column."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seamline.serve.json_lines import encode_timestamps
from seamline.sinks.json_values import encode_column
from seamline.sinks.row_shape import BOUNDS, RowShape

NULL = "%N"
"""What stands in a key for NULL; a percent sign of a text is followed by other letters."""


@dataclass(frozen=True)
class RowTexts:
    """How rows of a view are written."""

    head: str
    """What each key begins with: the prefix and ``{PIPELINE.SINK}``."""
    shape: RowShape
    """The rows."""
    ends: bool
    """Whether keys have the end of the window too, since windows of one start have several."""

    @property
    def form(self) -> str:
        """Say what keys are made of: rows of another form are not found by the keys of this one."""
        return ":".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """The columns of a key."""
        return [name for name in self.shape.identity if self.ends or name != BOUNDS[1]]

    def spell_keys(self, rows: pa.Table) -> pa.Array:
        """Write the keys of rows."""
        parts = [spell_part(combine(rows[name])) for name in self.parts]
        return pc.binary_join_element_wise(self.head, *parts, ":")

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write rows as JSON, the bounds of the window first."""
        others = [name for name in self.shape.names if name not in BOUNDS]
        parts = [f', "{name}": ' for name in others]
        values = [encode_column(combine(rows[name])) for name in others]
        pairs = [each for pair in zip(parts, values, strict=True) for each in pair]
        return pc.binary_join_element_wise(self.spell_bounds(rows), *pairs, "}", "")

    def spell_bounds(self, rows: pa.Table) -> pa.Array:
        """Write what the values of rows with these bounds begin with."""
        start, end = (encode_column(combine(rows[name])) for name in BOUNDS)
        return pc.binary_join_element_wise('{"window_start": ', start, ', "window_end": ', end, "")


def combine(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def spell_part(column: pa.Array) -> pa.Array:
    """Write values as a part of a key, in which no text has a colon."""
    if pa.types.is_string(column.type):
        text = pc.replace_substring(pc.replace_substring(column, "%", "%25"), ":", "%3A")
    elif pa.types.is_timestamp(column.type):
        text = pc.utf8_trim(encode_timestamps(column), '"')
    else:
        text = column.cast(pa.string())
    return pc.fill_null(text, NULL)
