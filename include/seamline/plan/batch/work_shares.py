"""A build's work: what was counted, and how files are shared out among tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAST = 32_000_000
"""Bytes that are worth a task of their own."""
PLENTY = 500_000_000
"""Bytes from which on a core takes several tasks one after another: one that fails is begun again sooner."""
TURNS = 4
"""Tasks for each core at most: the last one to end keeps the others waiting for less."""
IN_A_PART = 32_000_000
"""Hashes that a part sorts in its memory, eight bytes each."""


@dataclass(frozen=True)
class Counts:
    """What was read of one interval."""

    read: int
    """Rows."""
    duplicates: int
    """Duplicates among them."""
    not_selected: Mapping[str, int]
    """Rows that a view does not select, by view id."""
    exploded: Mapping[str, int]
    """By how many a view's rows are more, or fewer, than the records they are of, by view id."""

    def __add__(self, other: Counts) -> Counts:
        """Add what another task counted."""
        return Counts(
            self.read + other.read,
            self.duplicates + other.duplicates,
            sum_by_name(self.not_selected, other.not_selected),
            sum_by_name(self.exploded, other.exploded),
        )


def sum_by_name(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add up numbers by name."""
    return {name: some.get(name, 0) + more.get(name, 0) for name in {**some, **more}}


def split_by_size(sizes: Sequence[int], cores: int, *, least: int = 0) -> list[list[int]]:
    """Share things of so many bytes out, by their numbers: the largest first, each to the share that has least.

    ``least`` is what is worth a share of its own. Nothing makes no share. A task takes some 15 ms by itself, so there
    are no more than cores until each has plenty to do.
    """
    if not sizes:
        return []
    whole = sum(sizes)
    few, many = min(whole // (least or LEAST), cores), min(whole // PLENTY, TURNS * cores)
    count = min(max(few, many, 1), len(sizes))
    made: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for number in sorted(range(len(sizes)), key=lambda at: (-sizes[at], at)):
        least_full = min(range(count), key=lambda at: (held[at], at))
        made[least_full].append(number)
        held[least_full] += sizes[number]
    return [part for part in made if part]


def count_parts(things: int, slots: int, *, least: int = 0) -> int:
    """Return into how many parts to shuffle so many things: one for each core if ``least`` is there for each."""
    worth = slots if things >= least * slots else things // least
    return max(worth, -(-things // IN_A_PART), 1)
