"""The files of snapshots of folds: which there are, which of them fit the log, and which may go.

Their names say of which rows they are: the epoch, the watermark, and a hash of their process and of the stamp that the
log has for them; then the number of the part of the keys, and of how many parts.
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
NAMED = re.compile(r"((\d+)-(-?\d+)-[0-9a-f]+)-\d+-(\d+)\.parquet")


class SnapshotFiles(NamedTuple):
    """The files of the snapshots of one moment, one of each process that shared the keys."""

    epoch: int
    """The epoch up to which they have all rows."""
    mark: int
    """The watermark before which these are, in microseconds from 1970."""
    places: tuple[Location, ...]
    """Where they are."""


class SnapshotFolders:
    """The files of some processes in a warehouse, as the writer of the log knows it; those of others are deleted."""

    def __init__(self, writer: LogWriter, layout: Layout, ids: Iterable[str]) -> None:
        self.stamps, self.layout = LogStamps(writer, FORM), layout
        self.found: dict[str, list[SnapshotFiles]] = {}
        """By the id of a process: the files that there were at the last look, the newest first."""
        self.restated = writer.restated
        """How many restatements the rows of these are made with."""
        known = {layout.snapshots(id) for id in ids}
        for folder in list_places(layout.table("snapshots"), "*") if known else ():
            # What is left of a driver that died as it wrote has no name of ours.
            left = (each for each in list_all_files(folder) if not NAMED.fullmatch(each.name))
            delete_files(left if folder in known else list_all_files(folder))

    def name(self, process: CompiledProcess, epoch: Epoch, mark: int, count: int) -> list[Location]:
        """Return the places of so many files, which have the rows up to an epoch from before a watermark."""
        folder, stem = self.layout.snapshots(process.id), name_stem(process, self.stamps.stamp(epoch, mark))
        return [folder / f"{stem}-{number}-{count}.parquet" for number in range(count)]

    def look(self, process: CompiledProcess) -> None:
        """Look which files there are; delete those that do not fit the log, or are too many."""
        if self.restated != self.stamps.writer.restated:
            self.found, self.restated = {}, self.stamps.writer.restated
        found, other = self.list_files(process)
        kept = choose_kept_snapshots((each.mark for each in found), process.size)
        # Of those with the same watermark, the newest epoch has the most rows.
        by_mark = {each.mark: each for each in sorted(found, key=get_epoch) if each.mark in kept}
        self.found[process.id] = sorted(by_mark.values(), key=get_epoch, reverse=True)
        other += [each for each in found if each != by_mark.get(each.mark)]
        delete_files(place for each in other for place in each.places)

    def list_files(self, process: CompiledProcess) -> tuple[list[SnapshotFiles], list[SnapshotFiles]]:
        """List the files of a process that fit the log, and those that do not; not those that are being written."""
        known, fitting, other = {*self.found.get(process.id, ())}, [], []
        stems: dict[str, list[Location]] = {}
        for place in list_places(self.layout.snapshots(process.id), "*.parquet"):
            if named := NAMED.fullmatch(place.name):
                stems.setdefault(named[1], []).append(place)
        for stem, places in stems.items():
            epoch, mark, count = (int(NAMED.fullmatch(places[0].name)[at]) for at in (2, 3, 4))  # type: ignore[index]
            files = SnapshotFiles(epoch, mark, tuple(places))
            if files in known or self.fits(process, stem, files):
                if len(places) == count:
                    fitting.append(files)
            else:
                other.append(files)
        return fitting, other

    def fits(self, process: CompiledProcess, stem: str, files: SnapshotFiles) -> bool:
        """Return whether files have the rows of an epoch of the log, as they are to be made now."""
        stamp = self.stamps.find_stamp(files.epoch, files.mark)
        return stamp is not None and name_stem(process, stamp) == stem

    def find(self, process: CompiledProcess, before: float) -> SnapshotFiles | None:
        """Return the newest files of which the watermark is not after an instant."""
        if process.id not in self.found or self.restated != self.stamps.writer.restated:
            self.look(process)
        return next((each for each in self.found[process.id] if each.mark <= before), None)

    def discard(self, process: CompiledProcess, files: SnapshotFiles) -> None:
        """Delete files of which one cannot be read."""
        self.found[process.id].remove(files)
        delete_files(files.places)


def get_epoch(files: SnapshotFiles) -> int:
    """Return the epoch of files."""
    return files.epoch


def name_stem(process: CompiledProcess, stamp: IndexStamp) -> str:
    """Return what the names of the files of a process and a stamp begin with, and no others do, wherever they are."""
    hashed = hashlib.sha256(f"{process.id} {stamp.to_json()}".encode()).hexdigest()[:16]
    return f"{stamp.epoch}-{stamp.horizon}-{hashed}"
