"""Ledger files and what each says of itself: in its footer stand the epochs of it condensed, block by block.

A summary is in the file that it sums up, so it is there or not, and never of other rows. One that does not fit its
rows, or that is not there (files of earlier releases, and of others that compact tables), is made again by reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.column_bounds import Bounds
from seamline.lake.storage.data_files import DataFile, describe_target
from seamline.lake.storage.parquet_files import open_parquet_file, read_parquet_footer
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.fetched_files import look_at_files
from seamline.lake.store.locations import Location
from seamline.model.protocol.condensed import condense_epochs, count_of, first_of, from_text, to_text
from seamline.model.protocol.epoch import Epoch
from seamline.model.recent import Recent

SCHEMA = pa.schema(
    [
        ("epoch", pa.int64()),
        ("kind", pa.string()),
        ("edge", pa.bool_()),
        ("rows", pa.int64()),
        ("refused", pa.int64()),
        ("watermark", INSTANT),
        ("committed_at", INSTANT),
        ("token", pa.int64()),
        ("row", pa.string()),
    ]
)
WHOLE, BLOCKS = b"seamline.condensed", b"seamline.blocks"
BLOCK = 500
"""Epochs of a row group: what is read of a file for a cut within it."""
KEPT = 512
"""Summaries that a process remembers."""


def flatten_epoch(epoch: Epoch) -> dict[str, object]:
    """Spread an epoch over the ledger's columns."""
    return {
        "epoch": epoch.number,
        "kind": epoch.kind.value,
        "edge": epoch.edge,
        "rows": epoch.rows,
        "refused": sum(epoch.refused.values()),
        "watermark": epoch.watermark,
        "committed_at": epoch.committed_at,
        "token": epoch.token,
        "row": epoch.to_json(),
    }


def write_ledger_file(epochs: Iterable[Epoch], root: Location, name: str) -> DataFile:
    """Write epochs, in order and each once, as a file with its summary, a block at a time."""
    blocks = (
        (pa.Table.from_pylist([flatten_epoch(each) for each in block], schema=SCHEMA), condense_epochs(block))
        for block in split_into_blocks(epochs)
    )
    return write_ledger_blocks(blocks, root, name)


def write_ledger_blocks(
    blocks: Iterable[tuple[pa.Table, list[Epoch]]], root: Location, name: str
) -> DataFile:
    """Write row groups, each with its epochs condensed, as a file."""
    target, doubles = DataTarget(root / name), Bounds()
    with pq.ParquetWriter(target.sink, SCHEMA, compression="zstd", compression_level=1) as writer:
        told: list[list[Epoch]] = []
        for rows, block in blocks:
            writer.write_table(rows)
            told.append(block)
        if len(told) > 1 or count_of(told[0]) > 1:
            whole = condense_epochs(row for block in told for row in block)
            texts = json.dumps([to_text(block) for block in told])
            writer.add_key_value_metadata({WHOLE.decode(): to_text(whole), BLOCKS.decode(): texts})
    return describe_target(target, name, doubles)


def split_into_blocks(epochs: Iterable[Epoch]) -> Iterator[list[Epoch]]:
    """Split epochs into blocks."""
    block: list[Epoch] = []
    for epoch in epochs:
        block.append(epoch)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


@dataclass(frozen=True)
class LedgerFile:
    """A live file of the ledger."""

    path: str
    """Absolute."""
    first: int
    """The lowest epoch."""
    last: int
    """The highest epoch, inclusive."""
    rows: int
    """Epochs, or condensed runs of them."""
    mark: int | None = None
    """The largest watermark, in microseconds since 1970, rounded up; None if unknown."""
    since: int | None = None
    """When the earliest epoch was committed, in microseconds since 1970, rounded down; None if unknown."""

    def condense(self) -> list[Epoch]:
        """Condense the file's epochs."""
        if self.rows == 1:
            return self.read()
        return read_cached_summary(self.path, WHOLE, lambda: self._told() or condense_epochs(self.read()))

    def read_blocks(self) -> list[list[Epoch]]:
        """Read its row groups, each condensed; an empty list if its footer has no summaries."""
        return read_cached_summary(self.path, BLOCKS, self._blocks)

    def _blocks(self) -> list[list[Epoch]]:
        if not self._told():
            return []
        return [from_text(text) for text in json.loads(self._footer(BLOCKS))]

    def read(self, groups: Sequence[int] | None = None) -> list[Epoch]:
        """Read its epochs, in order and each once, or those of some row groups."""
        with open_parquet_file(self.path) as file:
            rows = file.read(["row"]) if groups is None else file.read_row_groups(list(groups), ["row"])
        found = {each.number: each for each in map(Epoch.from_json, rows["row"].to_pylist())}
        return [found[number] for number in sorted(found)]

    def _told(self) -> list[Epoch]:
        rows = from_text(self._footer(WHOLE) or "[]")
        fits = rows and (first_of(rows[0]), rows[-1].number) == (self.first, self.last)
        return rows if fits and count_of(rows) == self.rows else []

    def _footer(self, key: bytes) -> str:
        found: bytes = (read_parquet_footer(self.path).metadata or {}).get(key, b"")
        return found.decode()


T = TypeVar("T")
_kept: Recent[tuple[Hashable, ...], Any] = Recent(KEPT)


def read_cached_summary(path: str, what: bytes, read: Callable[[], T]) -> T:
    """Read a file, or return what was read of it before: a file never changes, but may be replaced by another."""
    [(_, found)] = look_at_files([path])
    key = (path, found.st_ino, found.st_mtime_ns, what)
    known: tuple[T] | None = _kept.get(key)
    if known is None:
        _kept[key] = known = (read(),)
    return known[0]
