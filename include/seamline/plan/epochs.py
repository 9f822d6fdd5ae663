"""Decisions of a stream: the next number, where to begin, and when a cut may fall."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from seamline.model.epoch import Epoch
from seamline.model.offsets import Lane, Vector


def next_number(seen: Collection[int | None]) -> int:
    """Give a number above every one that any table has seen, dead epochs included (rule 2)."""
    return max((number for number in seen if number is not None), default=-1) + 1


@dataclass(frozen=True)
class Checkpoint:
    """What Spark's checkpoint says: the last planned and the last finished batch and its end offsets.

    ``ends`` are by topic and partition.
    """

    planned: int
    finished: int
    ends: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Resume:
    """Go on with Spark's checkpoint: it ends where the master ends."""


@dataclass(frozen=True)
class Begin:
    """Start a new query from the master's end offsets; a partition not named is new."""

    offsets: Mapping[str, Mapping[int, int]]


def position(ends: Mapping[str, Mapping[int, int]], checkpoint: Checkpoint | None) -> Resume | Begin:
    """Decide where a start reads from; the master's ``ends`` count, not the checkpoint's (rule 3).

    They are by topic and partition; a topic of which nothing was read is not named.
    """
    if checkpoint and checkpoint.planned == checkpoint.finished and checkpoint.ends == ends and ends:
        return Resume()
    return Begin(ends)


@dataclass(frozen=True)
class EdgePolicy:
    """An edge is declared every ``epochs`` epochs or ``every`` of wall clock, whichever is first."""

    epochs: int
    every: timedelta

    def due(self, number: int, last_edge: int, now: datetime, last_edge_at: datetime) -> bool:
        """Tell whether epoch ``number`` should be an edge."""
        return number - last_edge >= self.epochs or now - last_edge_at >= self.every


def idle_lanes(
    positions: Vector,
    broker_ends: Mapping[Lane, int],
    last_seen: Mapping[Lane, datetime],
    *,
    now: datetime,
    after: timedelta,
) -> frozenset[Lane]:
    """List the lanes that are read to the broker's end and have shown nothing for ``after`` (rule 12).

    ``broker_ends`` are freshly asked; ``last_seen`` is the wall clock of the last record, or of the start.
    """
    return frozenset(
        lane
        for lane, end in broker_ends.items()
        if positions.get(lane, 0) >= end and now - last_seen.get(lane, now) >= after
    )


LEAST = 1000
"""Records: a smaller epoch is mostly overhead."""
FURTHEST = 4.0
"""How many times larger or smaller the next size may be."""


def next_size(size: int, records: int, seconds: float, *, target: float, most: int) -> int:
    """Give the size of the next epochs, after one of ``records`` that took ``seconds``.

    It changes where the epoch was half as long again as the target, or as large as allowed and less than half as
    long; in proportion, for the records' share of the time is by far the largest in epochs of such a length.
    """
    full = records * 10 >= size * 9
    if not (seconds > 1.5 * target or (full and seconds < target / 2)):
        return size
    factor = min(max(target / max(seconds, 0.001), 1 / FURTHEST), FURTHEST)
    return min(max(int(min(size, max(records, 1)) * factor), min(LEAST, most)), most)


def step_end(ledger: Iterable[Epoch], after: int, most: int) -> int:
    """Give the last epoch of a step of at most ``most`` rows above epoch ``after``, but of one epoch at least.

    ``after`` itself where the ledger has none above it.
    """
    last, rows = after, 0
    for epoch in ledger:
        if epoch.number > after:
            rows += epoch.rows
            if rows > most and last > after:
                break
            last = epoch.number
    return last


@dataclass(frozen=True)
class Turns:
    """When views that are behind are tried next: each failure in a row doubles the wait, ``least`` to ``most`` seconds.

    Where a step has brought one nearer, the next may follow at once.
    """

    at: float
    wait: float = 15.0
    least: float = 15.0
    most: float = 120.0

    def taken(self, now: float, *, moved: bool, behind: bool) -> Turns:
        """Take in a turn at ``now``: whether a view moved by it, and whether one is behind still."""
        if moved and behind:
            return replace(self, at=now, wait=self.least)
        wait = min(self.wait * 2, self.most) if behind else self.least
        return replace(self, at=now + (self.wait if behind else self.least), wait=wait)
