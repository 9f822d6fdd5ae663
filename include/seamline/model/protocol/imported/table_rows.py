"""Offsets of a Delta table's rows: each says which version brought the row, and where in it the row is.

A lane begins with all rows that one version has (``WHOLE`` and higher), then has those that later versions append.
"""

from __future__ import annotations

from dataclasses import dataclass

SPAN = 10_000_000_000
"""Offsets of one version; those that stand for no row are passed over."""
WHOLE = 5_000_000_000
"""From here on in a version's offsets are the rows of the whole table, below are those that the version appended."""


@dataclass(frozen=True)
class TableRow:
    """A row of a Delta table, or the end of those that a version brings."""

    version: int
    """The version, from 0."""
    row: int
    """Its number among the rows of the version, from 0."""
    whole: bool = False
    """Whether these are all rows of the table, or those that the version has appended."""

    @property
    def offset(self) -> int:
        """Return the offset that stands for it."""
        return self.version * SPAN + self.row + WHOLE * self.whole


def find_row(offset: int) -> TableRow:
    """Return what an offset stands for."""
    version, row = divmod(offset, SPAN)
    return TableRow(version, row % WHOLE, row >= WHOLE)


def count_rows(start: int, end: int) -> int:
    """Count the rows between two offsets of which the later one is in the version that is read; else all offsets."""
    first, last = find_row(start), find_row(end)
    if not last.row or (first.version, first.whole) == (last.version, last.whole):
        return end - start
    return last.row
