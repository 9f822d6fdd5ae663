"""A table that is kept open between reads: what was seen in it, and as of when nothing newer was there."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from deltalake.exceptions import DeltaError

from seamline.lake.storage import log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_entries import Commit
from seamline.lake.storage.log_follower import file_identity, since_boot
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.model.errors import NotFound, NotWhole
from seamline.model.recent import Recent

T = TypeVar("T")
BELIEVED = 10.0
"""Seconds for which a table in a bucket is taken for the one that was there, with the end that it had."""
SEEN = 256
"""Answers of different questions that are remembered of one version of a table: instants of the past are many."""
NEVER, ALWAYS = float("-inf"), float("inf")


@dataclass(frozen=True)
class Seen(Generic[T]):
    """What was seen in a table, be it None."""

    found: T
    """What ``see`` returned."""


@dataclass
class CachedTable:
    """A table's handle, and what was seen in the table at the handle's version."""

    table: Table
    """The handle."""
    identity: tuple[int, int] | None
    """Of the log's first entry: a table made again at the same place has another. None if the entry is gone."""
    seen: Recent[Hashable, Seen[Any]] = field(default_factory=lambda: Recent(SEEN))
    """By the reader's key; emptied when the version changes."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Taken by whoever uses the handle."""
    given: bool = False
    """Whether the handle was passed on to a writer."""
    believed: float = field(default_factory=time.monotonic)
    """When the log was last seen to have the handle's version."""
    asked: float = NEVER
    """When somebody began to ask for a newer version and found none, in seconds since the machine was started."""
    moved: float = field(default_factory=since_boot)
    """When it was known that the version that is seen is there: it had landed by then."""

    @property
    def at(self) -> tuple[int, str]:
        """The version that is seen, and the id of its commit."""
        return self.table.version, self.table.newest

    def is_known_since(self, instant: float) -> bool:
        """Return whether it is known, without asking, what was in the table at an instant or later.

        On disk nobody goes by that: to look is as cheap as to remember.
        """
        return self.asked >= instant and not is_asking_free(self.table.root)

    def refresh(self) -> None:
        """Move on to the newest version."""
        before, began = self.at, since_boot()
        try:
            try:
                self.table.refresh()
            except (DeltaError, OSError):
                self.table = Table.open(self.table.root)
                self.seen.clear()
            self.asked = max(self.asked, began)
        finally:
            # A request may fail after others have moved the handle on.
            self.note_move(before)

    def is_gone(self, *, surely: bool) -> bool:
        """Return whether the log has the handle's version no more, or another commit under it.

        Then the table was made again, or a start has set its end aside. On disk a refresh sees that; in a bucket it
        is a request, sent every BELIEVED seconds, and each time for who has to know it ``surely``.
        """
        now = time.monotonic()
        if is_asking_free(self.table.root) or (not surely and now - self.believed <= BELIEVED):
            return False
        with self.lock:
            version, newest = self.at
        try:
            found = log_store.read_commit(self.table.root, version)
        except OSError:
            # Whoever reads on asks again, and is told if the store is away.
            if surely:
                raise
            return False
        self.believed = now
        return found is None or found.id != newest

    def note_move(self, before: tuple[int, str]) -> None:
        """Note that whoever has looked at the version ``before`` may have moved the handle on: what was seen is old."""
        if self.at != before:
            self.seen.clear()
            self.moved = since_boot()

    def ask_next(self) -> Commit | None:
        """Ask for the next version, without the lock while the store is asked, and move on by it if it is there."""
        with self.lock:
            if not self.given and (self.asked == NEVER or self.table.is_outlived):
                self.refresh()
                return None
            before = self.at
        began = since_boot()
        try:
            commit = log_store.read_commit(self.table.root, before[0] + 1)
        except NotWhole:
            commit = None
        with self.lock:
            if self.given or self.at != before:
                return None
            if commit is None:
                self.table.stay(began)
                self.asked = max(self.asked, began)
                return None
            self.seen.clear()
            try:
                self.table.move_on(commit)
            finally:
                self.moved = since_boot()
        return commit


_held: Recent[Location, CachedTable] = Recent(1_024)
_absent: Recent[Location, float] = Recent(1_024)
"""When somebody began to look for a table in a bucket and found none."""
_guard = threading.Lock()


def identify_table(root: Location, known: CachedTable | None = None) -> tuple[int, int] | None:
    """Distinguish a table from another that was made again in its place, by its first entry.

    In a bucket that is a request, which is not sent for a table that is ``known``.
    """
    if known is None or is_asking_free(root):
        return file_identity(log_store.entry_path(root, 0))
    return known.identity


def find_cached_table(root: Location, since: float = ALWAYS, *, surely: bool = False) -> CachedTable | None:
    """Find a table, opened if nobody has before; None if there is none.

    Whether it is there is not asked again if that is known as of the instant ``since``, or later.
    """
    known = _held.get(root)
    if known is not None and known.is_gone(surely=surely):
        forget_cached_table(root)
        known = None
    if known is not None and known.is_known_since(since):
        return known
    if (_absent.get(root) or NEVER) >= since:
        return None
    began, first = since_boot(), identify_table(root, known)
    with _guard:
        held = _held.get(root)
        if held is not None and held.identity == first:
            return held
    try:
        opened = CachedTable(Table.open(root), first)
    except NotFound:
        _held.pop(root)
        if not is_asking_free(root):
            _absent[root] = began
        return None
    with _guard:
        held = _held.get(root)
        if held is None or held.identity != first:
            _held[root] = held = opened
            _absent.pop(root)
        return held


def is_known_since(root: Location, instant: float) -> bool:
    """Return whether it is known what was in a table of a bucket at an instant or later, or that it was not there."""
    held = _held.get(root)
    return (_absent.get(root) or NEVER) >= instant if held is None else held.is_known_since(instant)


def forget_cached_table(root: Location) -> CachedTable | None:
    """Forget a table's handle, and return it; None if there is none."""
    with _guard:
        return _held.pop(root)


def forget_what_was_seen(folder: Location) -> None:
    """Forget what was read of a pipeline's tables, and keep their handles: its versions alone are asked for next."""
    for root in _held:
        held = _held.get(root) if str(root).startswith(f"{folder}/") else None
        if held is not None:
            with held.lock:
                held.seen.clear()


def keep_tables_open(most: int) -> None:
    """Let this process keep so many tables open."""
    _held.most = _absent.most = most
