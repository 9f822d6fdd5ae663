"""What keys have been through before some of their rows: a snapshot of each, and the rows that are not in it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

import duckdb
import pyarrow as pa

from seamline.lake.joins.folded_rows import list_instants, read_values
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.joins.snapshot_files import SnapshotFiles, SnapshotFolders
from seamline.lake.joins.snapshots import read_snapshots_of_keys, snapshot_schema
from seamline.lake.joins.span_rows import read_rows_of_keys, read_span_rows
from seamline.lake.storage.layout import Layout
from seamline.lake.store.fetched_files import localize_files
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.tails import KeySpan

log = logging.getLogger("seamline.stream")
BROKEN = (OSError, pa.ArrowException, duckdb.Error)
Earliest = Mapping[KeySpan, int]
"""Keys in spans, each with an event time in microseconds from 1970."""


class PastRows(NamedTuple):
    """The past of some keys, in place of what was read of them before."""

    snapshots: pa.Table
    """What they go on from (``snapshot_schema``)."""
    rows: pa.Table
    """Their rows that are not in it; all of their spans where they have none."""


class PastReader:
    """Reads the past of one process's keys, as the log has it up to an epoch."""

    def __init__(
        self,
        process: CompiledProcess,
        pipeline: CompiledPipeline,
        layout: Layout,
        files: SnapshotFolders,
        until: int,
        judge: Judge | None = None,
    ) -> None:
        self.process, self.pipeline, self.layout = process, pipeline, layout
        self.files, self.until, self.judge = files, until, judge

    def read(self, late: Earliest, mark: float) -> list[PastRows]:
        """Read what keys have been through up to the event times from which on they are folded again.

        A snapshot of a key has all earlier rows, unless one of them has come after it: that key is read again, with a
        snapshot of before that row.
        """
        parts: list[PastRows] = []
        left = dict(late)
        while left:
            file = self.files.find(self.process, min(mark, *left.values()))
            if file is None:
                return [*parts, self.read_whole(left)]
            after, between = self.read_since(left, file)
            doubted = find_earliest(self.process, between)
            try:
                found = self.read_snapshots([key for key in left if key not in doubted], file)
            except BROKEN as error:
                log.warning("Snapshots of %s are deleted: %s", self.process.name, error)
                self.files.discard(self.process, file)
                continue
            parts.append(PastRows(found, after))
            left = {key: min(left[key], at) for key, at in doubted.items()}
        return parts

    def read_snapshots(self, keys: Collection[KeySpan], file: SnapshotFiles) -> pa.Table:
        """Read what keys had come to."""
        if not keys:
            return self.no_snapshots()
        return read_snapshots_of_keys(self.process, localize_files(file.places), keys)

    def read_whole(self, keys: Earliest) -> PastRows:
        """Read all rows of keys in spans."""
        rows = read_rows_of_keys(self.process, self.pipeline, self.layout, keys, self.until, self.judge)
        return PastRows(self.no_snapshots(), rows)

    def read_since(self, keys: Earliest, file: SnapshotFiles) -> tuple[pa.Table, pa.Table]:
        """Read the rows of keys from a snapshot's watermark on, and those before that which came after it."""
        given = self.process, self.pipeline, self.layout, keys, self.until, self.judge
        return (
            read_rows_of_keys(*given, times=(file.mark, None)),
            read_rows_of_keys(*given, times=(None, file.mark), above=file.epoch),
        )

    def find_doubted(self, file: SnapshotFiles, since: int) -> Earliest:
        """Find the keys of which a snapshot lacks rows, in the spans from an instant on."""
        rows = read_span_rows(
            self.process, self.pipeline, self.layout, (since, file.mark), self.until, self.judge, file.epoch
        )
        return find_earliest(self.process, rows)

    def no_snapshots(self) -> pa.Table:
        """Return no snapshots."""
        return snapshot_schema(self.process).empty_table()


def find_earliest(process: CompiledProcess, rows: pa.Table) -> dict[KeySpan, int]:
    """Find the event time of each key's first row in its span."""
    if not rows.num_rows:
        return {}
    instants = list_instants(rows["_event_time"])
    types = {field.name: field.type for field in process.columns}
    keys = zip(*(read_values(rows[key.name], types[key.name]) for key in process.keys), strict=True)
    found: dict[KeySpan, int] = {}
    for at, key in zip(instants, keys, strict=True):
        mine = KeySpan(key, at // process.size * process.size)
        found[mine] = min(at, found.get(mine, at))
    return found
