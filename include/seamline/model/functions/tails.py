"""What epochs add to what functions emit: of each key and span, its tail goes on, and the difference is told.

A tail begins where the recorded watermark has been: what is before it is settled, as long as no late row comes. A row
that comes after all others of its key goes on from there; only one that does not has the tail folded again. Tails are a
cache, made again from the rows of their spans (docs/protocol.md, rule 25).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from seamline.model.functions.folding import ALWAYS, BLANK, Fold, Item, KeyFold, KeyRow, Snapshot
from seamline.model.functions.records import Values

MOST_ROWS = 64
"""Rows of a tail that are kept without a look at which of them are settled."""


class KeySpan(NamedTuple):
    """A key in a span, in which its state has begun anew."""

    key: Values
    """The values of the key's columns."""
    span: int
    """Where the span begins, in microseconds from 1970."""


NONE: Sequence[KeyRow] = ()
Rows = Mapping[KeySpan, Sequence[KeyRow]]
"""Rows of keys in spans, each in any order."""


@dataclass(frozen=True)
class KeyChange:
    """What an epoch adds to, and withdraws from, what is shown of a key in a span."""

    key: KeySpan
    """The key and the span."""
    added: tuple[Item, ...]
    """What is shown now, and was not before."""
    withdrawn: tuple[Item, ...]
    """What was shown before, and is not now."""


@dataclass(slots=True)
class KeyTail:
    """A key's rows in a span that are not settled, and what has come of them."""

    settled: float
    """The instant before which all is settled, in microseconds from 1970."""
    begun: Snapshot = BLANK
    """The fold up to there."""
    rows: list[KeyRow] = field(default_factory=list)
    """The rows at or after it, in order."""
    latest: Snapshot = BLANK
    """The fold with all of them, and with the timers up to the watermark."""
    hidden: list[Item] = field(default_factory=list)
    """What was emitted, and is not yet shown."""
    due: float = math.inf
    """When it is looked at again without a row."""


class Tails:
    """The tails of the keys of a function, whose state begins anew every ``size`` microseconds."""

    def __init__(self, fold: Fold, size: int, mark: float = ALWAYS) -> None:
        self.fold, self.size, self.mark = fold, size, mark
        self.tails: dict[KeySpan, KeyTail] = {}
        self.due: list[tuple[float, int, KeySpan]] = []
        """When tails are to be looked at again, the next one first; in turn, as keys may have no order."""
        self.turn = 0

    def restore(self, rows: Rows) -> None:
        """Make the tails of keys anew of all rows of their spans, up to the watermark."""
        for key, known in rows.items():
            tail = KeyTail(key.span)
            self.refold(key, tail, sorted(known), self.mark)
            self.keep(key, tail)

    def find_late(self, rows: Rows) -> set[KeySpan]:
        """Find the keys of which rows come that are before what is settled: all rows of their spans are needed."""
        late = set()
        for key, new in rows.items():
            tail = self.tails.get(key)
            settled = tail.settled if tail else max(self.mark, key[1])
            for row in new:
                if row[0] < settled:
                    late.add(key)
                    break
        return late

    def take(self, rows: Rows, older: Rows, mark: float) -> list[KeyChange]:
        """Take in the rows of an epoch and the watermark that it records; return what changes.

        ``older`` has all earlier rows of the keys of ``find_late``. After an error all tails are void.
        """
        changes, last = [], self.mark
        due = [key for key in self.pop_due(mark) if key not in rows]
        self.mark = mark
        for key in [*rows, *due]:
            new = rows.get(key, NONE)
            if len(new) > 1:
                new = sorted(new)
            tail = self.tails.get(key) or KeyTail(max(last, key[1]))
            if key in older:
                tail = KeyTail(key.span, rows=sorted(older[key]))
            if key not in older and (not new or not tail.rows or new[0] > tail.rows[-1]):
                change = self.go_on(key, tail, new)
            else:
                before = self.refold(key, KeyTail(tail.settled, tail.begun), tail.rows, last)
                change = find_change(key, before, self.refold(key, tail, sorted([*tail.rows, *new]), mark))
            if change:
                changes.append(change)
            self.keep(key, tail)
        return changes

    def go_on(self, key: KeySpan, tail: KeyTail, new: Sequence[KeyRow]) -> KeyChange | None:
        """Let a tail go on with rows that come after all others."""
        items = tail.hidden + self.run(key, tail, tail.latest, new, self.mark)
        tail.rows += new
        if not items:
            return None
        tail.hidden = [item for item in items if item.needs > self.mark]
        shown = items if not tail.hidden else [item for item in items if item.needs <= self.mark]
        return KeyChange(key, tuple(shown), ()) if shown else None

    def refold(self, key: KeySpan, tail: KeyTail, rows: list[KeyRow], mark: float) -> list[Item]:
        """Fold a tail from its beginning with these rows; return what is shown of it at a watermark."""
        items = self.run(key, tail, tail.begun, rows, mark)
        tail.rows = rows
        tail.hidden = [item for item in items if item.needs > mark]
        return [item for item in items if item.needs <= mark]

    def run(
        self, key: KeySpan, tail: KeyTail, begun: Snapshot, rows: Sequence[KeyRow], mark: float
    ) -> list[Item]:
        """Fold rows, and fire the timers up to a watermark; return what is emitted."""
        border, run = key.span + self.size, KeyFold(self.fold, begun)
        run.take_rows(rows)
        if mark < border:
            run.fire_timers(mark + 1)
        else:
            run.end(border)
        tail.latest = run.stop()
        return run.items

    def keep(self, key: KeySpan, tail: KeyTail) -> None:
        """Keep a tail for later epochs, unless it is over or has nothing; let go of the rows that are settled."""
        border = key.span + self.size
        self.settle(tail)
        if self.mark >= border or not (tail.rows or tail.hidden or tail.latest.state):
            self.tails.pop(key, None)
            return
        self.tails[key] = tail
        due: float = tail.rows[-1].at + 1 if tail.rows else border
        if tail.latest.timers:
            due = min(due, tail.latest.timers[0])
        for item in tail.hidden:
            due = min(due, item.needs)
        if due < tail.due:
            tail.due = due
            self.turn += 1
            heappush(self.due, (due, self.turn, key))

    def settle(self, tail: KeyTail) -> None:
        """Let go of the rows before the watermark, where that is all of them, or most of many."""
        if not tail.rows or tail.rows[-1].at < self.mark:
            tail.settled, tail.begun, tail.rows = max(self.mark, tail.settled), tail.latest, []
        elif len(tail.rows) > MOST_ROWS:
            count = bisect_left(tail.rows, self.mark, key=lambda row: row.at)
            if count > len(tail.rows) // 2:
                _, begun = self.fold.go_on(tail.begun, tail.rows[:count], int(self.mark))
                tail.settled, tail.begun, tail.rows = self.mark, begun, tail.rows[count:]

    def pop_due(self, mark: float) -> list[KeySpan]:
        """Return the keys of which something is due at a watermark."""
        found = []
        while self.due and self.due[0][0] <= mark:
            due, _, key = heappop(self.due)
            tail = self.tails.get(key)
            if tail and tail.due == due:
                tail.due = math.inf
                found.append(key)
        return found


def find_change(key: KeySpan, before: list[Item], now: list[Item]) -> KeyChange | None:
    """Return what is added and what is withdrawn; None where nothing is."""
    if now[: len(before)] == before:
        return KeyChange(key, tuple(now[len(before) :]), ()) if len(now) > len(before) else None
    old, new = Counter(before), Counter(now)
    found = KeyChange(key, tuple((new - old).elements()), tuple((old - new).elements()))
    return found if found.added or found.withdrawn else None
