"""Small Parquet files kept in memory between reads: slices come every second or two, and never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import pyarrow as pa

from seamline.lake.storage import parquet_files
from seamline.lake.store.fetched_files import look_at_files
from seamline.runtime.deadline import in_time

SMALL = 1_000_000
"""Bytes on disk: what is larger is read where it is, a few columns and row groups of it."""
MOST = 64_000_000
"""Bytes in memory: of all that is kept, what was not asked for for longest goes first."""
UNPACKED = 8
"""Bytes in memory for one on disk, about."""


class CachedFiles:
    """The contents of files, by path and what distinguishes a file from another that was put in its place."""

    def __init__(self, *, small: int = SMALL, most: int = MOST) -> None:
        self.small, self.most = small, most
        self.tables: OrderedDict[tuple[str, int, int], pa.Table] = OrderedDict()
        self.bytes = 0
        self.lock = threading.Lock()

    def of(self, paths: Sequence[str]) -> tuple[list[pa.Table], list[str]]:
        """Return the tables of the small files, and the paths of the others; FileNotFoundError as a read would.

        Of more than fits nothing is kept: it would be gone before it is asked for again.
        """
        looked = look_at_files(paths)
        small = [(path, found) for path, found in looked if found.st_size <= self.small]
        if UNPACKED * sum(found.st_size for _, found in small) > self.most:
            return [], [path for path, _ in looked]
        others = [path for path, found in looked if found.st_size > self.small]
        return [self.table((path, found.st_ino, found.st_mtime_ns)) for path, found in in_time(small)], others

    def table(self, key: tuple[str, int, int]) -> pa.Table:
        """Return the contents of a file, read the first time."""
        with self.lock:
            if key in self.tables:
                self.tables.move_to_end(key)
                return self.tables[key]
        table = parquet_files.read_parquet_file(key[0]).replace_schema_metadata()
        with self.lock:
            if key not in self.tables:
                self.tables[key] = table
                self.bytes += table.nbytes
            while self.bytes > self.most:
                self.bytes -= self.tables.popitem(last=False)[1].nbytes
        return table


KEPT = CachedFiles()
"""This process's."""
