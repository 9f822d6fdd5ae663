"""Which rows of which files an import takes, and where in its lane each of them is."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property


@dataclass(frozen=True)
class HistoryFile:
    """A file whose rows may be imported."""

    name: str
    """Its path below the place that was named."""
    mark: str
    """The first 32 hexadecimal digits of the SHA-256 of its content; of a file of a Delta table, of its footer."""
    path: str
    """Where its rows are read: the file itself, or what was staged of it."""
    rows: int
    """How many rows it has."""
    size: int
    """The bytes of the whole original file, as it was found."""
    low: datetime | None = None
    """The smallest event time of its rows, UTC, inclusive; None if unknown."""
    high: datetime | None = None
    """The largest event time of its rows, UTC, inclusive; None if unknown."""
    stamp: str = ""
    """Changes whenever the original file is written; empty for one that is never written again, as of a Delta table."""
    values: tuple[tuple[str, str], ...] = ()
    """Columns whose one value is not in the file but in the table, as JSON, by name."""

    @property
    def identity(self) -> tuple[str, str]:
        """Return what it is known by, wherever the place is mounted."""
        return self.name, self.mark


@dataclass(frozen=True)
class TakenFiles:
    """Files that earlier imports were planned of, and how many rows of each are or will be read."""

    files: tuple[HistoryFile, ...] = ()
    """The files, as they were planned last."""
    rows: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Rows that are taken, by the file's identity."""

    @cached_property
    def by_stamp(self) -> Mapping[tuple[str, str], HistoryFile]:
        """The files by name and stamp, those without a stamp left out."""
        return {(file.name, file.stamp): file for file in self.files if file.stamp}

    @cached_property
    def by_identity(self) -> Mapping[tuple[str, str], HistoryFile]:
        """The files by what they are known by."""
        return {file.identity: file for file in self.files}

    def is_whole(self, file: HistoryFile) -> bool:
        """Return whether all rows of a file are taken."""
        return self.rows.get(file.identity, 0) >= file.rows


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
