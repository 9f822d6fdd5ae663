"""Sets of offsets as runs: half-open, ascending, apart from each other. Each function takes one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Run = tuple[int, int]
"""``[start, end)``: start is in, end is out."""
Runs = Sequence[Run]


def merge_offset_runs(runs: Iterable[Run]) -> list[Run]:
    """Put runs in order and join those that touch or overlap; empty ones are dropped."""
    found: list[Run] = []
    for start, end in sorted(runs):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def subtract_offset_runs(one: Runs, other: Runs) -> list[Run]:
    """Return what is in the one and not in the other."""
    found, at = [], 0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        here, begin = at, start
        while here < len(other) and other[here][0] < end:
            if other[here][0] > begin:
                found.append((begin, other[here][0]))
            begin = max(begin, other[here][1])
            here += 1
        if begin < end:
            found.append((begin, end))
        # A run of the other may reach into the next of the one.
        at = max(at, here - 1)
    return found


def intersect_offset_runs(one: Runs, other: Runs) -> list[Run]:
    """Return what is in the one and in the other."""
    return subtract_offset_runs(one, subtract_offset_runs(one, other))


def count_run_offsets(runs: Iterable[Run]) -> int:
    """Count the offsets of runs."""
    return sum(end - start for start, end in runs)


def format_offset_runs(runs: Runs, most: int = 5) -> str:
    """Name offsets for people, the first ``most`` runs of them."""
    shown = ", ".join(str(start) if end == start + 1 else f"{start}..{end - 1}" for start, end in runs[:most])
    return f"{shown} and {len(runs) - most} runs more" if len(runs) > most else shown
