"""What epochs add to what functions emit: of each key and span, its tail goes on, and the difference is told.

A tail begins where the recorded watermark has been: what is before it is settled, as long as no late row comes. A row
that comes after all others of its key goes on from there; only one that does not has the tail folded again. Tails are a
cache, made again from the rows of their spans (docs/protocol.md, rule 25).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

from seamline.model.functions.folding import ALWAYS, BLANK, Fold, Item, KeyFold, KeyRow, Snapshot
from seamline.model.functions.key_tail import (
    MOST_OF_PART,
    NOTHING,
    KeyTail,
    list_hidden,
    list_shown,
)
from seamline.model.functions.records import Values

MOST_PARTS = 2
"""Parts of a tail that are kept without a look at which of them are settled."""
STRIDES = 65_536
"""Parts of a span by which it is known how new the rows of keys are."""


class KeySpan(NamedTuple):
    """A key in a span, in which its state has begun anew."""

    key: Values
    """The values of the key's columns."""
    span: int
    """Where the span begins, in microseconds from 1970."""


NONE: Sequence[KeyRow] = ()
Rows = Mapping[KeySpan, Sequence[KeyRow]]
"""Rows of keys in spans, each in any order."""
Begun = Mapping[KeySpan, Snapshot]
"""What the folds of keys in spans go on from: those that it lacks begin with their spans."""
FROM_THE_BEGINNING: Begun = {}


class KeyChange(NamedTuple):
    """What an epoch adds to, and withdraws from, what is shown of a key in a span."""

    key: KeySpan
    """The key and the span."""
    added: tuple[Item, ...]
    """What is shown now, and was not before."""
    withdrawn: tuple[Item, ...]
    """What was shown before, and is not now."""


class Tails:
    """The tails of the keys of a function, whose state begins anew every ``size`` microseconds."""

    def __init__(self, fold: Fold, size: int, mark: float = ALWAYS) -> None:
        self.fold, self.size, self.mark = fold, size, mark
        self.tails: dict[KeySpan, KeyTail] = {}
        self.due: list[tuple[float, int, KeySpan]] = []
        """When something of a key is to be shown, the next one first; in turn, as keys may have no order."""
        self.recent: list[tuple[int, int, Sequence[KeySpan]]] = []
        """The keys of epochs by when all of their rows are settled, in the same way."""
        self.turn, self.stride = 0, max(size // STRIDES, 1)

    def restore(self, rows: Rows, begun: Begun = FROM_THE_BEGINNING) -> None:
        """Make the tails of keys anew of all rows of their spans that are not in ``begun``, up to the watermark."""
        for key, known in rows.items():
            self.keep(key, self.make_tail(key, known, self.mark, begun.get(key, BLANK))[0])
        self.note_recent(rows)

    def list_snapshots(self) -> Iterator[tuple[KeySpan, Snapshot]]:
        """List what keys have come to with the rows before the watermark; those that have no state are left out."""
        fold = replace(self.fold, watch=[0])
        for key, tail in self.tails.items():
            found = tail.stop_at(self.mark, fold)
            if found.state is not None:
                yield key, found

    def find_late(self, rows: Rows) -> dict[KeySpan, int]:
        """Find the keys of which rows come that are before what is settled, each with the first one's event time.

        Their earlier rows are needed: all of their spans, or those that are not in a snapshot of before that time.
        """
        late, mark, tails = {}, self.mark, self.tails
        for key, new in rows.items():
            tail = tails.get(key)
            # Timers have fired up to the watermark, behind rows that are older than that.
            settled = (
                mark if not tail or not tail.parts or tail.parts[-1].rows[-1].at < mark else tail.settled
            )
            for row in new:
                if row[0] < settled:
                    late[key] = min(row[0] for row in new)
                    break
        return late

    def take(
        self, rows: Rows, older: Rows, mark: float, begun: Begun = FROM_THE_BEGINNING
    ) -> list[KeyChange]:
        """Take in the rows of an epoch and the watermark that it records; return what changes.

        ``older`` has all earlier rows of the keys of ``find_late`` that are not in ``begun``. After an error all tails
        are void.
        """
        changes, last = [], self.mark
        due = [key for key in self.pop_due(mark) if key not in rows]
        self.mark = mark
        for key in [*rows, *due]:
            new = rows.get(key, NONE)
            if len(new) > 1:
                new = sorted(new)
            tail = self.tails.get(key)
            if key in older:
                tail, change = self.begin_again(key, (begun.get(key, BLANK), older[key]), new, last)
            elif tail is None:
                tail = KeyTail(KeyFold(self.fold, BLANK), max(last, key.span))
                change = self.go_on(key, tail, new)
            elif new and tail.parts and new[0] < tail.parts[-1].rows[-1]:
                change = self.insert(key, tail, new, last)
            else:
                change = self.go_on(key, tail, new)
            if change:
                changes.append(change)
            self.keep(key, tail)
        self.note_recent(rows)
        self.settle_recent()
        return changes

    def go_on(self, key: KeySpan, tail: KeyTail, new: Sequence[KeyRow]) -> KeyChange | None:
        """Let a tail go on with rows that come after all others."""
        run, mark, items = tail.run, self.mark, tail.hidden
        if new:
            self.settle(tail)
            if len(new) > MOST_OF_PART:
                items = [*items, *tail.extend(new)]
            else:
                tail.append(new)
                run.take_rows(new)
        run.reach(mark, key[1] + self.size)
        if run.items:
            items = [*items, *tail.take_items()]
        if not items:
            return None
        tail.hidden = [item for item in items if item.needs > mark] or NOTHING
        shown = [item for item in items if item.needs <= mark] if tail.hidden else items
        return KeyChange(key, tuple(shown), ()) if shown else None

    def insert(self, key: KeySpan, tail: KeyTail, new: Sequence[KeyRow], last: float) -> KeyChange | None:
        """Fold a tail again from the first of its parts in which there is a row before others."""
        number, parts = tail.find_part(new[0]), tail.parts
        before = list_shown(parts[number:], last)
        waiting = list_hidden(parts[:number], last, self.mark)
        tail.refold(number, new)
        tail.run.reach(self.mark, key[1] + self.size)
        tail.take_items()
        change = find_change(key, before, list_shown(parts[number:], self.mark))
        if waiting:
            added, withdrawn = (change.added, change.withdrawn) if change else ((), ())
            change = KeyChange(key, (*waiting, *added), withdrawn)
        tail.hidden = list_hidden(parts, self.mark) or NOTHING
        self.settle(tail)
        return change

    def begin_again(
        self, key: KeySpan, past: tuple[Snapshot, Sequence[KeyRow]], new: Sequence[KeyRow], last: float
    ) -> tuple[KeyTail, KeyChange | None]:
        """Make the tail of a key anew of its past and ``new`` rows; return it, and what these change."""
        begun, older = past
        _, before = self.make_tail(key, older, last, begun)
        tail, now = self.make_tail(key, [*older, *new], self.mark, begun)
        return tail, find_change(key, before, now)

    def make_tail(
        self, key: KeySpan, rows: Sequence[KeyRow], mark: float, begun: Snapshot
    ) -> tuple[KeyTail, list[Item]]:
        """Make the tail of a key of all rows since a snapshot, in any order.

        Returns it, and what a watermark shows of that.
        """
        rows = sorted(rows)
        tail = KeyTail(KeyFold(self.fold, begun), max(mark, key.span))
        count = bisect_left(rows, mark, key=lambda row: row.at)
        tail.run.take_some(rows[:count])
        settled, tail.run.items = tail.run.items, []
        items = [*settled, *tail.extend(rows[count:])]
        tail.run.reach(mark, key[1] + self.size)
        items += tail.take_items()
        tail.hidden = [item for item in items if item.needs > mark] or NOTHING
        return tail, [item for item in items if item.needs <= mark]

    def keep(self, key: KeySpan, tail: KeyTail) -> None:
        """Keep a tail for later epochs, unless it is over or has nothing."""
        border = key[1] + self.size
        if tail.run.state is None:
            self.settle(tail)
        if self.mark >= border or tail.blank:
            self.tails.pop(key, None)
            return
        self.tails[key] = tail
        due: float = border
        if tail.run.timers:
            due = min(due, tail.run.timers[0])
        if self.fold.forget is not None and tail.run.seen is not None:
            due = min(due, tail.run.seen + self.fold.forget)
        for item in tail.hidden:
            due = min(due, item.needs)
        if due < tail.due:
            tail.due = due
            self.turn += 1
            heappush(self.due, (due, self.turn, key))

    def settle(self, tail: KeyTail) -> None:
        """Let go of the rows before the watermark, where that is all of them, or of many."""
        parts, mark = tail.parts, self.mark
        if not parts or parts[-1].rows[-1].at < mark:
            if tail.settled < mark:
                tail.settled = mark
            if parts:
                parts.clear()
        elif len(parts) > MOST_PARTS and parts[0].rows[-1].at < mark:
            count = 1
            while parts[count].rows[-1].at < mark:
                count += 1
            del parts[:count]
            tail.settled = mark

    def note_recent(self, rows: Rows) -> None:
        """Note until when keys have rows that are not settled; those of about one time together."""
        found: dict[int, list[KeySpan]] = {}
        for key, new in rows.items():
            newest = max((row[0] for row in new), default=key[1])
            found.setdefault(newest // self.stride, []).append(key)
        for number, keys in found.items():
            self.turn += 1
            heappush(self.recent, ((number + 1) * self.stride, self.turn, keys))

    def settle_recent(self) -> None:
        """Let go of the rows of epochs that are settled by now, and of keys that have nothing else."""
        while self.recent and self.recent[0][0] <= self.mark:
            _, _, keys = heappop(self.recent)
            for key in keys:
                if tail := self.tails.get(key):
                    self.settle(tail)
                    if tail.blank:
                        del self.tails[key]

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
