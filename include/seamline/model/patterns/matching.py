"""The search for matches in the rows of a key, a row at a time.

A match begins as early as it can. Among those that begin at a row, and are no longer than ``within``, it is the one
that is preferred: rows further away from its first one are as good as none. It is decided once no thread is left that
is preferred to it, or the time is over; where there is none, the next row's turn has come.

Whether the first row has a match may show late, and the rows behind it must not be read again then. So matches are
looked for from all rows at once. Those that have the same threads are one group: a row costs as many steps as there are
groups, of which ``fail{3,} ok`` has four, not as many as there are rows.
"""

from __future__ import annotations

from typing import NamedTuple

from seamline.model.patterns.threads import ThreadBook, Threads

NEVER = -1
"""The number of no row."""


class Match(NamedTuple):
    """Rows that match."""

    first: int
    """The number of the first of them, counted from the first row of the search."""
    steps: list[int]
    """The number of the step of each."""


class Group:
    """Rows at which matches may begin that have the same threads, or had them until there were none left.

    Groups that come to have the same threads are joined: one becomes part of the other, from a row on.
    """

    __slots__ = ("last", "part_of", "since", "size", "threads")

    def __init__(self, threads: Threads | None) -> None:
        self.threads = threads
        self.last, self.since, self.size = NEVER, NEVER, 1
        self.part_of: Group | None = None

    def find_whole(self) -> Group:
        """Return the group of which it is part by now."""
        found = self
        while found.part_of is not None:
            found = found.part_of
        return found

    def find_last(self) -> int:
        """Return the last row of the match that is preferred so far; NEVER if there is none yet."""
        found, group = self.last, self
        while group.part_of is not None:
            since, group = group.since, group.part_of
            if group.last >= since:
                found = group.last
        return found

    def join(self, other: Group, since: int) -> Group:
        """Join another group, and return the whole: what its matches come to from row ``since`` on holds for both."""
        whole, part = (self, other) if self.size >= other.size else (other, self)
        part.part_of, part.since = whole, since
        whole.size += part.size
        whole.threads = self.threads
        return whole


class Search:
    """The rows of a key since the first one whose match is not decided."""

    def __init__(self, book: ThreadBook, within: int | None = None, to_next_row: bool = False) -> None:
        self.book, self.within, self.to_next_row = book, within, to_next_row
        self.begun = 0
        self.times: list[int] = []
        self.holds: list[int] = []
        self.starts: list[Group] = []
        self.waiting: dict[Threads, Group] = {}

    def take(self, at: int, holds: int) -> None:
        """Take the next row, none before the last one; ``decide`` up to its time must have been called."""
        number = self.begun + len(self.starts)
        fresh = Group(self.book.first)
        self.times.append(at)
        self.holds.append(holds)
        self.starts.append(fresh)
        same = self.waiting.get(self.book.first)
        self.waiting[self.book.first] = same.join(fresh, number) if same else fresh
        waiting: dict[Threads, Group] = {}
        for threads, group in self.waiting.items():
            way = self.book.advance(threads, holds)
            if way.completed_by >= 0:
                group.last = number
            group.threads = way.threads
            if way.threads is not None:
                same = waiting.get(way.threads)
                waiting[way.threads] = same.join(group, number + 1) if same else group
        self.waiting = waiting

    def decide(self, now: int | None) -> list[Match]:
        """Return the matches that are decided by an instant, before any row of it; None for the end of the rows."""
        found = []
        while self.starts and self.is_decided(now):
            last = self.starts[0].find_last()
            if last == NEVER:
                self.drop(1)
                continue
            length = last - self.begun + 1
            found.append(Match(self.begun, self.book.name_rows(self.holds[:length])))
            self.drop(1 if self.to_next_row else length)
        return found

    def is_decided(self, now: int | None) -> bool:
        """Return whether nothing can change the match of the first row any more."""
        if now is None or (self.within is not None and now > self.times[0] + self.within):
            return True
        return self.starts[0].find_whole().threads is None

    def drop(self, rows: int) -> None:
        """Forget the first rows, and the groups that no other row is in."""
        for group in self.starts[:rows]:
            whole = group.find_whole()
            whole.size -= 1
            if not whole.size and whole.threads is not None:
                del self.waiting[whole.threads]
        del self.times[:rows], self.holds[:rows], self.starts[:rows]
        self.begun += rows
