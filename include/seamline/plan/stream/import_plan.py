"""Which rows of which files an import takes, and where in its lane each of them is."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class HistoryFile:
    """A file whose rows may be imported."""

    name: str
    """Its path below the place that was named."""
    mark: str
    """A hash by which its content is known again; another content under the same name has another."""
    path: str
    """Where it is read: the file, or what was staged of it."""
    rows: int
    """How many rows it has."""
    size: int
    """Its bytes, as it was found."""
    low: datetime | None = None
    """A bound below the event times of its rows, UTC; None where nothing says one."""
    high: datetime | None = None
    """A bound above them, itself in; None where nothing says one."""
    stamp: str = ""
    """What is the same as long as nobody writes the file again; empty for one that nobody does."""
    values: tuple[tuple[str, str], ...] = ()
    """Columns whose one value is not in the file but in the table, as JSON, by name."""

    @property
    def identity(self) -> tuple[str, str]:
        """Return what it is known by, wherever the place is mounted."""
        return self.name, self.mark


@dataclass(frozen=True)
class PlannedFile:
    """Rows of a file in the lane of an import: the offset of a row is ``start`` and its place after ``first``."""

    file: HistoryFile
    """The file."""
    first: int
    """The first of its rows that is taken, from 0; all after it are."""
    start: int
    """The offset of that row."""

    @property
    def end(self) -> int:
        """Return the offset after its last row."""
        return self.start + self.file.rows - self.first


@dataclass(frozen=True)
class FileRows:
    """A run of rows of one file, and the offset of its first."""

    file: HistoryFile
    """The file."""
    first: int
    """The first row, from 0."""
    last: int
    """The row after the last."""
    offset: int
    """The first row's offset."""


def plan_files(found: Iterable[HistoryFile], taken: Mapping[tuple[str, str], int]) -> list[PlannedFile]:
    """Put files in the order of their event times, and leave out their rows that are ``taken``, so many of each."""
    planned: list[PlannedFile] = []
    at = 0
    for file in sorted(found, key=lambda each: (each.low is not None, each.low, each.name)):
        first = taken.get(file.identity, 0)
        if first < file.rows:
            planned.append(PlannedFile(file, first, at))
            at = planned[-1].end
    return planned


def list_taken_rows(
    plans: Mapping[str, Sequence[PlannedFile]], taken: Mapping[str, int]
) -> dict[tuple[str, str], int]:
    """Return how many rows of each file are taken by imports, of which so many places are, by their ids."""
    rows: dict[tuple[str, str], int] = {}
    for id, count in taken.items():
        for each in plans[id]:
            if count > each.start:
                last = each.first + min(count, each.end) - each.start
                rows[each.file.identity] = max(rows.get(each.file.identity, 0), last)
    return rows


def find_file_rows(planned: Sequence[PlannedFile], start: int, end: int) -> list[FileRows]:
    """Return the rows whose offsets are in ``[start, end)``, file by file."""
    at = max(bisect_right(planned, start, key=lambda each: each.start) - 1, 0)
    found = []
    for each in planned[at:]:
        if each.start >= end:
            break
        low, high = max(start, each.start), min(end, each.end)
        if low < high:
            shift = each.first - each.start
            found.append(FileRows(each.file, low + shift, high + shift, low))
    return found


def name_import(planned: Iterable[PlannedFile], options: Mapping[str, object]) -> str:
    """Return the id of an import: the same rows, read with the same options, are the same import."""
    rows = [[*each.file.identity, each.first] for each in planned]
    return hashlib.sha256(json.dumps([rows, options], sort_keys=True).encode()).hexdigest()[:16]
