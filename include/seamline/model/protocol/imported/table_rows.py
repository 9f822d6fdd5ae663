"""Offsets of a Delta table's rows: each says which version brought the row, and where in it the row is.

A lane begins with all rows that one version has (from ``WHOLE`` on), then has those that later versions append. An
epoch that reads the last row of a version ends at ``DONE`` and more, so that nobody has to look at the version again,
whose files may be gone by then. Offsets between two versions stand for no row, and are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

SPAN = 10_000_000_000
"""Offsets of one version."""
WHOLE = 5_000_000_000
"""From here on in a version's offsets are the rows of the whole table, below are those that the version appended."""
DONE = 2_500_000_000
"""So much is added to the end of what a version brings: it is more than the rows that one may bring."""


@dataclass(frozen=True)
class TableRow:
    """A row of a Delta table, or the place after one."""

    version: int
    """The version, from 0."""
    row: int
    """Its number among the rows of the version, from 0."""
    whole: bool = False
    """Whether these are all rows of the table, or those that the version has appended."""
    done: bool = False
    """Whether it is the place after the last of them."""

    @property
    def offset(self) -> int:
        """Return the offset that stands for it."""
        return self.version * SPAN + self.row + WHOLE * self.whole + DONE * self.done

    @property
    def begun(self) -> bool:
        """Return whether there may be more rows of the version, some of which were read, or of the whole table."""
        return not self.done and (self.whole or self.row > 0)


def find_row(offset: int) -> TableRow:
    """Return what an offset stands for."""
    version, place = divmod(offset, SPAN)
    whole, rest = divmod(place, WHOLE)
    done, row = divmod(rest, DONE)
    return TableRow(version, row, bool(whole), bool(done))


def find_row_run(start: int, end: int) -> tuple[int, int]:
    """Return the offsets of rows in ``[start, end)``, end exclusive: those of the version that ``end`` is in.

    All of them where no row of that version is read, as in a hole; none where only versions without rows are passed.
    """
    first, last = find_row(start), find_row(end)
    if start == end or not (last.row or last.done):
        return start, end
    begin = TableRow(last.version, 0, last.whole).offset
    same = (first.version, first.whole, first.done) == (last.version, last.whole, False)
    return (start if same else begin), begin + last.row


def describe_row_span(start: int, end: int) -> str:
    """Say which versions are between two offsets."""
    first, last = find_row(start), find_row(end)
    return f"versions from {first.version}, row {first.row}, to before {last.version}"
