"""What is read next of a Delta table, from the offset where reading has stopped: decided before any file is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seamline.model.protocol.imported.table_rows import TableRow, find_row


@dataclass(frozen=True)
class Brought:
    """What a version of a table brings."""

    rows: int = 0
    """How many rows it brings."""
    lost: str = ""
    """Why they cannot be read; empty if they can."""


LookAt = Callable[[int, bool], Brought]
"""Looks at what a version appends, or, with True, at all rows that the table has in it."""


@dataclass(frozen=True)
class NextRows:
    """What comes next from an offset on."""

    beginning: int
    """The first offset of what is there; above the one that was asked for where what comes next cannot be read."""
    end: int
    """The offset at which the version that is read next ends; without one the offset that was asked for."""
    version: int = -1
    """The version that is read next; -1 where there is nothing new, or it cannot be read."""
    whole: bool = False
    """Whether all rows of the table are read of it, or those that it appends."""
    lost: str = ""
    """Why what comes next cannot be read."""
    passed: int = -1
    """All versions up to this one are read, or bring no rows."""


def begin_at(newest: int) -> int:
    """Return the offset at which reading begins: all rows of the newest version."""
    return TableRow(newest, 0, whole=True).offset


def find_next_rows(position: int, newest: int, look_at: LookAt, *, passed: int = -1) -> NextRows:
    """Find what comes next after a position, of the versions up to the newest one.

    Versions up to ``passed`` are known to bring nothing after it: their log entries may be gone. Versions in a row
    that cannot be read are one loss.
    """
    at = find_row(position)
    first = at.version + (at.begun or at.done)
    if at.begun:
        brought = look_at(at.version, at.whole)
        if brought.lost:
            return extend_loss(position, at.version, newest, brought.lost, look_at)
        if at.row < brought.rows:
            return NextRows(position, end_of(at.version, brought, at.whole), at.version, at.whole)
    for version in range(max(first, passed + 1), newest + 1):
        brought = look_at(version, False)
        if brought.lost:
            return extend_loss(position, version, newest, brought.lost, look_at)
        if brought.rows:
            return NextRows(position, end_of(version, brought), version, passed=version - 1)
    return NextRows(position, position, passed=max(first - 1, passed, newest))


def extend_loss(position: int, version: int, newest: int, why: str, look_at: LookAt) -> NextRows:
    """Describe the loss of a version, and of those after it that cannot be read either."""
    behind = version + 1
    while behind <= newest and look_at(behind, False).lost:
        behind += 1
    return NextRows(TableRow(behind, 0).offset, position, lost=why, passed=version - 1)


def find_last_end(position: int, newest: int, look_at: LookAt) -> int:
    """Find the offset at which all is read that the table has now and that can be read."""
    at = find_row(position)
    for version in range(newest, at.version - (not (at.begun or at.done)), -1):
        brought = look_at(version, False)
        if brought.rows and not brought.lost:
            return end_of(version, brought)
    return find_next_rows(position, min(at.version, newest), look_at).end


def end_of(version: int, brought: Brought, whole: bool = False) -> int:
    """Return the offset at which a version ends, so that nobody has to look at it again."""
    return TableRow(version, brought.rows, whole, done=True).offset
