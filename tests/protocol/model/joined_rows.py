"""The law of joined rows: what a log's join is, in plain Python, and the two ways by which the speed layer adds to it.

Intervals are one hour long, and rows come at whole hours. An interval's rows are its lefts, those of them that are
matched, and pairs, which are booked where their left is. Each names the rows it is made of, so that nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

NONE = -1
Item = tuple[object, ...]
Items = tuple[tuple[Item, ...], ...]
"""What each interval has, in order."""


class Row(NamedTuple):
    """A record of either side; ``of`` is the record that it repeats, ``key`` None joins nothing."""

    id: int
    side: str
    at: int
    key: int | None = 1
    of: int = NONE
    version: int = 0

    @property
    def event(self) -> int:
        """Return what copies share."""
        return self.id if self.of == NONE else self.of


class Decision(NamedTuple):
    """A row is another row from the epoch on that names this; ``to`` is None if it is withdrawn or erased."""

    id: int
    to: Row | None


class Epoch(NamedTuple):
    """One commit of the master: rows by id, those flagged as copies, decisions it names, and what it states."""

    number: int
    rows: tuple[int, ...] = ()
    flagged: tuple[int, ...] = ()
    edge: bool = True
    watermark: int = 9
    names: tuple[int, ...] = ()
    frontier: int = NONE
    hole: int = NONE
    line: int = 0


Log = tuple[Epoch, ...]


@dataclass(frozen=True)
class Join:
    """The rows that may come, the decisions that may be made about them, the bounds in hours, and the intervals.

    Where it is of the ``latest``, a left row has its latest right one, or none, in the place of a pair with each.
    """

    topic: tuple[Row, ...]
    decisions: tuple[Decision, ...] = ()
    before: int = 0
    after: int = 1
    intervals: int = 2
    latest: bool = False

    def pairs(self, left: Row, right: Row) -> bool:
        """Return whether two rows are a pair; both borders are in."""
        same = left.key is not None and left.key == right.key
        return same and -self.before <= right.at - left.at <= self.after

    def reach(self, interval: int, row: Row) -> bool:
        """Return whether a row can change what an interval has."""
        return interval - self.before <= row.at <= interval + self.after

    def meets(self, interval: int, decision: Decision, *, own: bool = False) -> bool:
        """Return whether a decision is about rows in the reach of an interval, or its ``own``."""
        old = self.topic[decision.id]
        both = [old] if decision.to is None else [old, decision.to]
        return any(each.at == interval if own else self.reach(interval, each) for each in both)

    def booked(self, rows: Iterable[tuple[int, Item]]) -> Items:
        """Put items to their intervals."""
        found: list[list[Item]] = [[] for _ in range(self.intervals)]
        for at, item in rows:
            found[at].append(item)
        return tuple(tuple(sorted(each)) for each in found)


def name(row: Row) -> tuple[int, int]:
    """Name a row as it is."""
    return row.id, row.version


def left(row: Row) -> tuple[int, Item]:
    """Return the item of a left row."""
    return row.at, ("left", name(row))


def matched(row: Row) -> tuple[int, Item]:
    """Return the item of a left row that has a pair."""
    return row.at, ("matched", name(row))


def pair(one: Row, other: Row) -> tuple[int, Item]:
    """Return the item of a pair, booked where its left is."""
    return one.at, ("pair", name(one), name(other))


def named(log: Log, until: int) -> frozenset[int]:
    """Return the decisions that epochs up to a number name."""
    return frozenset(each for epoch in log if epoch.number <= until for each in epoch.names)


@lru_cache(maxsize=200_000)
def counted(log: Log, join: Join, until: int, decisions: frozenset[int]) -> tuple[tuple[int, Row], ...]:
    """Return the rows up to an epoch that are not flagged, as decisions have them, each with its own epoch."""
    changed = {join.decisions[each].id: join.decisions[each].to for each in decisions}
    found = []
    for epoch in log:
        if epoch.number > until:
            break
        for id in epoch.rows:
            row = changed.get(id, join.topic[id])
            if row is not None and id not in epoch.flagged:
                found.append((epoch.number, row))
    return tuple(found)


def rows_at(log: Log, join: Join, until: int) -> list[Row]:
    """Return the rows that count at an epoch."""
    return [row for _, row in counted(log, join, until, named(log, until))]


@lru_cache(maxsize=200_000)
def joined(rows: tuple[Row, ...], join: Join) -> Items:
    """Join rows by comparing each with each: what everything else is held against."""
    return join.booked(each for one in rows if one.side == "L" for each in items_of(one, rows, join))


def items_of(one: Row, rows: Iterable[Row], join: Join) -> Iterator[tuple[int, Item]]:
    """Return what a left row is worth."""
    partners = [each for each in rows if each.side == "R" and join.pairs(one, each)]
    if join.latest:
        best = max(partners, key=lambda each: (each.at, each.id), default=None)
        yield one.at, ("as of", name(one), *([name(best)] if best else []))
        return
    yield left(one)
    if partners:
        yield matched(one)
    yield from (pair(one, each) for each in partners)


@lru_cache(maxsize=200_000)
def oracle(log: Log, join: Join, until: int) -> Items:
    """Return R(n): all pairs of rows of epochs up to one, with the decisions that these name."""
    return joined(tuple(rows_at(log, join, until)), join)


def grown(old: list[Row], new: list[Row], join: Join) -> Items:
    """Return what new rows add: new lefts with all rights, and old lefts with new rights."""
    rights, fresh = ([each for each in some if each.side == "R"] for some in (old, new))
    found: list[tuple[int, Item]] = []
    for one in new:
        if one.side == "L":
            found += items_of(one, [*rights, *fresh], join)
    for one in old:
        partners = [each for each in fresh if join.pairs(one, each)] if one.side == "L" else []
        if partners and not any(join.pairs(one, each) for each in rights):
            found.append(matched(one))
        found += [pair(one, each) for each in partners]
    return join.booked(found)


def changed(old: Items, new: Items) -> tuple[Items, Items]:
    """Return what was added and what was taken away, by comparing both."""
    return less(new, old), less(old, new)


def together(some: list[Items], join: Join) -> Items:
    """Add items up."""
    return tuple(tuple(sorted(item for items in some for item in items[at])) for at in range(join.intervals))


def less(some: Items, others: Items) -> Items:
    """Take items away from others, each as often as it is there."""
    found = []
    for own, gone in zip(some, others, strict=True):
        rest = list(own)
        for each in gone:
            if each in rest:
                rest.remove(each)
        found.append(tuple(rest))
    return tuple(found)


def caught(
    rows: tuple[tuple[int, Row], ...], join: Join, a: int, *, by_larger: bool, once: bool
) -> dict[int, Items]:
    """Return what a catch-up above ``a`` adds, by the epoch it belongs to.

    A pair belongs to the larger epoch of its two (``by_larger``; else to its left's), and a left is matched at the
    least such epoch of all its pairs, which counts only if it is above ``a`` (``once``).
    """
    found: dict[int, list[tuple[int, Item]]] = {}
    for epoch, one in rows:
        if one.side != "L":
            continue
        partners = [(max(epoch, at), each) for at, each in rows if each.side == "R" and join.pairs(one, each)]
        fresh = [(at, each) for at, each in partners if at > a]
        if epoch > a:
            found.setdefault(epoch, []).append(left(one))
        for at, each in fresh:
            found.setdefault(at if by_larger else epoch, []).append(pair(one, each))
        first = min((at for at, _ in (partners if once else fresh)), default=a)
        if first > a and fresh:
            found.setdefault(first, []).append(matched(one))
    return {epoch: join.booked(items) for epoch, items in found.items()}


def near(
    rows: tuple[tuple[int, Row], ...], join: Join, a: int, *, twice: bool
) -> tuple[tuple[int, Row], ...]:
    """Return the rows above ``a`` and the older ones that a catch-up reads for them.

    Lefts in the reach of new rights; rights in the reach of new lefts and, ``twice``, in that of those lefts.
    """
    new = [row for epoch, row in rows if epoch > a]
    lefts = [row for epoch, row in rows if epoch > a and row.side == "L"]
    if twice:
        lefts += [row for _, row in rows if row.side == "L" and in_reach(row, new, join)]
    return tuple(
        (epoch, row)
        for epoch, row in rows
        if epoch > a
        or (row.side == "L" and in_reach(row, new, join))
        or (row.side == "R" and in_reach(row, lefts, join))
    )


def in_reach(row: Row, others: Iterable[Row], join: Join) -> bool:
    """Return whether a row is near enough to one of the other side."""
    sign = 1 if row.side == "L" else -1
    return any(
        each.side != row.side and -join.before <= sign * (each.at - row.at) <= join.after for each in others
    )
