"""Tables kept open between reads: a handle per table, refreshed only when someone reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from seamline.lake.storage import log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_follower import file_identity
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.model.errors import NotFound
from seamline.model.recent import Recent

T = TypeVar("T")
BELIEVED = 10.0
"""Seconds for which a table in a bucket is taken for the one that was there, with the end that it had."""
SEEN = 256
"""Answers of different questions that are remembered of one version of a table: instants of the past are many."""


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

    def refresh(self) -> None:
        """Move on to the newest version."""
        before = self.table.version, self.table.newest
        try:
            self.table.refresh()
        except (DeltaError, OSError):
            self.table = Table.open(self.table.root)
            self.seen.clear()
        if (self.table.version, self.table.newest) != before:
            self.seen.clear()

    def is_gone(self, *, surely: bool) -> bool:
        """Return whether the log has the handle's version no more, or another commit under it, or does not say.

        Then the table was made again, or a start has set its end aside. On disk a refresh sees that; in a bucket it
        is a request, sent every BELIEVED seconds, and each time for who has to know it ``surely``.
        """
        now = time.monotonic()
        if is_asking_free(self.table.root) or (not surely and now - self.believed <= BELIEVED):
            return False
        with self.lock:
            version, newest = self.table.version, self.table.newest
        try:
            found = log_store.read_commit(self.table.root, version)
        except OSError:
            # To open the table is tried again a few times.
            return True
        self.believed = now
        return found is None or found.id != newest


_held: Recent[Location, CachedTable] = Recent(1_024)
_guard = threading.Lock()


def identify_table(root: Location, known: CachedTable | None = None) -> tuple[int, int] | None:
    """Distinguish a table from another that was made again in its place, by its first entry.

    In a bucket that is a request, which is not sent for a table that is ``known``.
    """
    if known is None or is_asking_free(root):
        return file_identity(log_store.entry_path(root, 0))
    return known.identity


def forget_table(root: Location) -> None:
    """Forget a table whose log was shortened: what was seen of its end is so no more."""
    with _guard:
        _held.pop(root)


def read_cached_table(
    root: Location, key: Hashable, see: Callable[[Table], T], *, surely: bool = False
) -> T | None:
    """Read what ``see`` finds in the newest version of a table, None if there is no table.

    It is found once per version and ``key`` and shared between threads: ``see`` returns something immutable
    and lets no handle out. ``surely`` not in an end that was set aside, for which a bucket is asked once more.
    """
    held = _holding(root, surely=surely)
    if held is None:
        return None
    with held.lock:
        if held.given:
            return read_cached_table(root, key, see, surely=surely)
        held.refresh()
        seen: Seen[T] | None = held.seen.get(key)
        if seen is None:
            held.seen[key] = seen = Seen(see(held.table))
        return seen.found


def take_cached_table(root: Location) -> Table | None:
    """Take the handle itself, at the newest version, for a writer; None if none is cached. Others reopen.

    The handle of a table that is gone, or was created again since, is forgotten.
    """
    first = identify_table(root)
    with _guard:
        held = _held.pop(root)
    if held is None or held.identity != first:
        return None
    with held.lock:
        held.given = True
        try:
            held.refresh()
        except NotFound:
            return None
        return held.table


def _holding(root: Location, *, surely: bool) -> CachedTable | None:
    known = _held.get(root)
    if known is not None and known.is_gone(surely=surely):
        forget_table(root)
        known = None
    first = identify_table(root, known)
    with _guard:
        held = _held.get(root)
        if held is not None and held.identity == first:
            return held
        try:
            held = CachedTable(Table.open(root), first)
            _held[root] = held
        except NotFound:
            _held.pop(root)
            return None
        return held


@dataclass(frozen=True)
class Files:
    """The live files of one version of a table."""

    root: Location
    """The table's folder."""
    version: int
    """The table's version."""
    actions: pa.Table
    """One row for each file, with its statistics."""

    @classmethod
    def of(cls, table: Table) -> Files:
        """List the files that a table's handle sees."""
        return cls(table.root, table.version, table.actions())

    def low(self, column: str) -> pa.ChunkedArray:
        """Return the least value per file; NULL if it is not known."""
        return self._stat(f"min.{column}")

    def high(self, column: str) -> pa.ChunkedArray:
        """Return the greatest value per file; NULL if it is not known."""
        return self._stat(f"max.{column}")

    def partition(self, column: str) -> pa.ChunkedArray:
        """Return the partition value per file."""
        return self._stat(f"partition.{column}")

    def keep(self, mask: pa.ChunkedArray) -> Files:
        """Keep the files for which the mask is true or not known."""
        return Files(self.root, self.version, self.actions.filter(pc.fill_null(mask, True)))

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return pc.sum(self.actions["num_records"]).as_py() or 0

    @property
    def paths(self) -> list[str]:
        """Return the absolute path of every file, or its URL."""
        return [self._path(name) for name in self.actions["path"].to_pylist()]

    def _path(self, name: str) -> str:
        # The log may spell a path in URL form; the folder on disk is named as it was written.
        if "%" not in name:
            return f"{self.root}/{name}"
        return str(locate_table_file(self.root, name))

    def _stat(self, name: str) -> pa.ChunkedArray:
        if name in self.actions.column_names:
            return self.actions[name]
        return pa.chunked_array([pa.nulls(self.actions.num_rows)])
