"""Which snapshots of a fold are kept: many of a short time ago, few of long ago, so that none is far before a row."""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST = 30_000_000
"""Microseconds of event time below which all snapshots are of one age."""


def choose_kept_snapshots(marks: Iterable[int], size: int) -> set[int]:
    """Choose among snapshots by their watermarks, in microseconds; none is older than ``size`` before the newest.

    Ages are parted where they double, and of each part the newest and the oldest are kept: the oldest comes into the
    next part in time, and the newest takes its place.
    """
    by_age: dict[int, list[int]] = {}
    ordered = sorted(marks, reverse=True)
    for mark in ordered:
        age = ordered[0] - mark
        if age <= size:
            by_age.setdefault((age // SHORTEST).bit_length(), []).append(mark)
    return {mark for some in by_age.values() for mark in (some[0], some[-1])}
