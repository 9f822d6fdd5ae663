"""Tables kept open between reads: a handle per table, refreshed only when someone reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept.cached_table import (
    ALWAYS,
    Seen,
    find_cached_table,
    forget_cached_table,
    identify_table,
)
from seamline.lake.storage.kept.table_reading import current_reading
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.store.locations import Location
from seamline.model.errors import NotFound

T = TypeVar("T")


def read_cached_table(
    root: Location, key: Hashable, see: Callable[[Table], T], *, surely: bool = False
) -> T | None:
    """Read what ``see`` finds in the newest version of a table, None if there is no table.

    It is found once per version and ``key`` and shared between threads: ``see`` returns something immutable
    and lets no handle out; ``surely`` not in an end that was set aside, for which a bucket is asked once more.
    Who reads several tables (``read_side_by_side``) sees what he expects, or newer.
    """
    reading = current_reading()
    held = find_cached_table(root, reading.since if reading else ALWAYS, surely=surely)
    if held is None:
        if reading:
            reading.read.add(root)
        return None
    if reading and root in reading.before and not held.is_known_since(reading.since):
        reading.ask()
    with held.lock:
        if held.given:
            return read_cached_table(root, key, see, surely=surely)
        if reading is None or not held.is_known_since(reading.since):
            held.refresh()
        else:
            # Asked beside others, it may have been moved on to what is refused.
            held.table.require_ours()
        seen: Seen[T] | None = held.seen.get(key)
        if seen is None:
            before, seen = held.at, Seen(see(held.table))
            held.note_move(before)
            held.seen[key] = seen
        if reading:
            reading.note(held)
        return seen.found


def take_cached_table(root: Location) -> Table | None:
    """Take the handle itself, at the newest version, for a writer; None if none is cached. Others reopen.

    The handle of a table that is gone, or was created again since, is forgotten.
    """
    first = identify_table(root)
    held = forget_cached_table(root)
    if held is None or held.identity != first:
        return None
    with held.lock:
        held.given = True
        try:
            held.refresh()
        except NotFound:
            return None
        return held.table


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

    def find_bound(self, column: str, count: int) -> object:
        """Return a value that at least ``count`` rows reach, by the files' least; None if that is not known."""
        # Their greatest will not do: bounds are rounded outward, so that no row may reach them.
        starts = self.low(column).to_pylist() if self.actions.num_rows >= count else []
        return sorted(starts)[-count] if starts and None not in starts else None

    def nulls(self, column: str) -> pa.ChunkedArray:
        """Return how many rows have no value per file; NULL if it is not known."""
        return self._stat(f"null_count.{column}")

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
