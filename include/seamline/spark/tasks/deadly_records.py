"""Which record ends the process that validates it: found by halves, each of them validated in tasks of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from seamline.model.protocol.offsets import OffsetRange

FEW = 4
"""So many other records are tried before one is blamed."""
MOST = 20
"""So many records may end their process in one run; more are no accident."""
WHY = "the process that judges it ends, each time"
Dies = Callable[[Sequence[OffsetRange]], bool]


def find_deadly_record(ranges: Sequence[OffsetRange], dies: Dies) -> OffsetRange | None:
    """Find one record without which there is hope, in about as many trials as ``ranges`` can be halved.

    None if no record ends its process alone, as where they are too much together, and where any record does, or
    none at all: then it was the machine.
    """
    some = all_of = [keep_rows(part) for part in ranges if len(part)]
    if not some or dies([]):
        return None
    while sum(map(len, some)) > 1:
        one, other = halve_ranges(some)
        some = one if dies(one) else other
    [found] = some
    others = [each for each in sample_records(all_of) if each != found][:FEW]
    innocent = not others or any(not dies([each]) for each in others)
    return found if innocent and dies([found]) else None


def keep_rows(part: OffsetRange) -> OffsetRange:
    """Leave out the offsets of a table that stand for no row."""
    start, end = part.rows
    return OffsetRange(part.lane, start, end)


def sample_records(ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return some records of other places: the first and the last of each range."""
    found = [replace(part, end=part.start + 1) for part in ranges]
    return [*dict.fromkeys([*found, *(replace(part, start=part.end - 1) for part in ranges)])]


def halve_ranges(ranges: Sequence[OffsetRange]) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Cut ranges in two of as many records, lane by lane."""
    left = sum(map(len, ranges)) // 2
    one: list[OffsetRange] = []
    other: list[OffsetRange] = []
    for part in ranges:
        at = min(part.start + left, part.end)
        left -= at - part.start
        one += [replace(part, end=at)] if at > part.start else []
        other += [replace(part, start=at)] if at < part.end else []
    return one, other
