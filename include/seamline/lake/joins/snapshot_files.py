"""The files of snapshots of folds: which there are, which of them fit the log, and which may go.

Their names say of which rows they are: the epoch, the watermark, and a hash of their process and of the stamp that the
log has for them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.joins.log_stamps import LogStamps, LogWriter
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, delete_files, list_all_files, list_places
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.kept_snapshots import choose_kept_snapshots

FORM = "snapshots 1"
"""How they are kept."""
NAMED = re.compile(r"(\d+)-(-?\d+)-[0-9a-f]+\.parquet")


class SnapshotFile(NamedTuple):
    """A file of snapshots."""

    place: Location
    """Where it is."""
    epoch: int
    """The epoch up to which it has all rows."""
    mark: int
    """The watermark before which these are, in microseconds from 1970."""


class SnapshotFiles:
    """The files of some processes in a warehouse, as the writer of the log knows it; those of others are deleted."""

    def __init__(self, writer: LogWriter, layout: Layout, ids: Iterable[str]) -> None:
        self.stamps, self.layout = LogStamps(writer, FORM), layout
        self.found: dict[str, list[SnapshotFile]] = {}
        """By the id of a process: the files that there were at the last look, the newest first."""
        self.restated = writer.restated
        """How many restatements the rows of these are made with."""
        known = {layout.snapshots(id) for id in ids}
        for folder in list_places(layout.table("snapshots"), "*") if known else ():
            # What is left of a driver that died as it wrote has no name of ours.
            left = (each for each in list_all_files(folder) if not NAMED.fullmatch(each.name))
            delete_files(left if folder in known else list_all_files(folder))

    def place(self, process: CompiledProcess, epoch: Epoch, mark: int) -> Location:
        """Return the place of the file that has all rows before a watermark, up to an epoch."""
        return self.layout.snapshots(process.id) / name_file(process, self.stamps.stamp(epoch, mark))

    def fits(self, process: CompiledProcess, file: SnapshotFile) -> bool:
        """Return whether a file has the rows of an epoch of the log, as they are to be made now."""
        stamp = self.stamps.find_stamp(file.epoch, file.mark)
        return stamp is not None and name_file(process, stamp) == file.place.name

    def look(self, process: CompiledProcess) -> None:
        """Look which files there are; delete those that do not fit the log, or are too many."""
        folder = self.layout.snapshots(process.id)
        found: list[SnapshotFile] = []
        wrong: list[SnapshotFile] = []
        if self.restated != self.stamps.writer.restated:
            self.found, self.restated = {}, self.stamps.writer.restated
        known = {each.place for each in self.found.get(process.id, ())}
        for place in list_places(folder, "*.parquet"):
            if named := NAMED.fullmatch(place.name):
                file = SnapshotFile(place, int(named[1]), int(named[2]))
                (found if place in known or self.fits(process, file) else wrong).append(file)
        kept = choose_kept_snapshots((each.mark for each in found), process.size)
        # Of those with the same watermark, the newest epoch has the most rows.
        by_mark = {
            each.mark: each for each in sorted(found, key=lambda each: each.epoch) if each.mark in kept
        }
        self.found[process.id] = sorted(by_mark.values(), key=lambda each: each.epoch, reverse=True)
        delete_files(each.place for each in (*found, *wrong) if each not in by_mark.values())

    def find(self, process: CompiledProcess, before: float) -> SnapshotFile | None:
        """Return the newest file of which the watermark is not after an instant."""
        if process.id not in self.found or self.restated != self.stamps.writer.restated:
            self.look(process)
        return next((each for each in self.found[process.id] if each.mark <= before), None)

    def discard(self, process: CompiledProcess, file: SnapshotFile) -> None:
        """Delete a file that cannot be read."""
        self.found[process.id].remove(file)
        delete_files([file.place])


def name_file(process: CompiledProcess, stamp: IndexStamp) -> str:
    """Name the file of a process and a stamp: no other has that name, wherever it is."""
    hashed = hashlib.sha256(f"{process.id} {stamp.to_json()}".encode()).hexdigest()[:16]
    return f"{stamp.epoch}-{stamp.horizon}-{hashed}.parquet"
