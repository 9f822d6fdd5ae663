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
from seamline.lake.joins.snapshots import is_torn, read_snapshots_of_keys, snapshot_schema
from seamline.lake.joins.span_rows import read_rows_of_keys, read_span_rows
from seamline.lake.storage.layout import Layout
from seamline.lake.store.fetched_files import localize_files
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.tails import KeySpan

log = logging.getLogger("seamline.stream")
BROKEN = (OSError, pa.ArrowException, duckdb.Error)
"""What the reading of a file raises."""
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
            groups: dict[SnapshotFiles | None, dict[KeySpan, int]] = {}
            for key, at in left.items():
                groups.setdefault(self.files.find(self.process, min(mark, at)), {})[key] = at
            left = {}
            for file, keys in groups.items():
                if file is None:
                    parts.append(self.read_whole(keys))
                else:
                    left |= self.read_group(keys, file, parts)
        return parts

    def read_group(
        self, keys: Mapping[KeySpan, int], file: SnapshotFiles, parts: list[PastRows]
    ) -> dict[KeySpan, int]:
        """Read the past of keys from the snapshots of one moment; return the keys that need older ones."""
        given = self.process, self.pipeline, self.layout
        between = read_rows_of_keys(
            *given, keys, self.until, self.judge, times=(None, file.mark), above=file.epoch
        )
        doubted = find_earliest(self.process, between)
        kept = [key for key in keys if key not in doubted]
        found = self.read_snapshots(kept, file)
        if found is None:
            return dict(keys)
        if kept:
            rows = read_rows_of_keys(*given, kept, self.until, self.judge, times=(file.mark, None))
            parts.append(PastRows(found, rows))
        return {key: min(keys[key], at) for key, at in doubted.items()}

    def read_snapshots(self, keys: Collection[KeySpan], file: SnapshotFiles) -> pa.Table | None:
        """Read what keys had come to; None if a file is broken or missing: those of its moment are then deleted."""
        if not keys:
            return self.no_snapshots()
        try:
            paths = localize_files(file.places)
        except FileNotFoundError as error:
            said = str(error)
        else:
            try:
                return read_snapshots_of_keys(self.process, paths, keys)
            except BROKEN as error:
                if not is_torn(error):
                    raise
                said = str(error)
        log.warning("Snapshots of %s cannot be read, and are deleted: %s", self.process.name, said)
        self.files.discard(self.process, file)
        return None

    def read_whole(self, keys: Earliest) -> PastRows:
        """Read all rows of keys in spans."""
        rows = read_rows_of_keys(self.process, self.pipeline, self.layout, keys, self.until, self.judge)
        return PastRows(self.no_snapshots(), rows)

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
