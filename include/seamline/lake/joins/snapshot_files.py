"""The files of snapshots, of folds and of tables: which there are, which of them fit the log, and which may go.

Their names say of which rows they are: the epoch, the watermark, and a hash of their process and of the stamp that the
log has for them; then the number of the part of the keys, and of how many parts.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.joins.log_stamps import LogStamps, LogWriter
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, delete_files, list_all_files, list_places
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.kept_snapshots import choose_kept_snapshots

log = logging.getLogger("seamline.stream")
FORM = "snapshots 1"
"""How they are kept, and made: another number where what folds rows, other than users' code, comes to other states."""
NAMED = re.compile(r"((\d+)-(-?\d+)-[0-9a-f]+)-\d+-(\d+)\.parquet")


class Snapshotted(Protocol):
    """What has snapshots: a process, or a changelog."""

    @property
    def id(self) -> str:
        """Its id, of which the folder is named."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def size(self) -> int:
        """How far before the newest snapshot the oldest may be, in microseconds."""


class SnapshotFiles(NamedTuple):
    """The files of the snapshots of one moment, one of each process that shared the keys."""

    epoch: int
    """The epoch up to which they have all rows."""
    mark: int
    """The watermark before which these are, in microseconds from 1970."""
    places: tuple[Location, ...]
    """Where they are."""


class SnapshotFolders:
    """The files of some processes in a warehouse, as the writer of the log knows it."""

    def __init__(
        self,
        writer: LogWriter,
        layout: Layout,
        ids: Iterable[str],
        *,
        form: str = FORM,
        restates: bool = True,
    ) -> None:
        self.stamps, self.layout = LogStamps(writer, form, restates), layout
        self.found: dict[str, list[SnapshotFiles]] = {}
        """By the id of a process: the files that there were at the last look, the newest first."""
        self.named: dict[str, set[str]] = {}
        """By the same: what the names of files begin with that fit the log, as it was looked for, or was named here."""
        self.restated = writer.restated
        """How many restatements the rows of these are made with."""
        self.ids = [*ids]

    def clear(self) -> None:
        """Delete the files of other processes, and what was not written to its end."""
        known = {self.layout.snapshots(id) for id in self.ids}
        for folder in list_places(self.layout.table("snapshots"), "*"):
            # What is left of a driver that died as it wrote has no name of ours.
            left = (each for each in list_all_files(folder) if not NAMED.fullmatch(each.name))
            delete_files(left if folder in known else list_all_files(folder))

    def name(self, process: Snapshotted, epoch: Epoch, mark: int, count: int) -> list[Location]:
        """Return the places of so many files, which have the rows up to an epoch from before a watermark."""
        folder, stem = self.layout.snapshots(process.id), name_stem(process, self.stamps.stamp(epoch, mark))
        self.named.setdefault(process.id, set()).add(stem)
        return [folder / f"{stem}-{number}-{count}.parquet" for number in range(count)]

    def tidy(self, process: Snapshotted) -> None:
        """Look which files there are; delete those that do not fit the log, or are too many."""
        delete_files(self.look(process))

    def look(self, process: Snapshotted) -> list[Location]:
        """Look which files there are; return those that do not fit the log, or are too many."""
        if self.restated != self.stamps.writer.restated:
            self.found, self.named, self.restated = {}, {}, self.stamps.writer.restated
        found, partial, other = self.list_files(process)
        kept = choose_kept_snapshots((each.mark for each in found), process.size)
        # Of those with the same watermark, the newest epoch has the most rows.
        by_mark = {each.mark: each for each in sorted(found, key=get_epoch) if each.mark in kept}
        self.found[process.id] = sorted(by_mark.values(), key=get_epoch, reverse=True)
        other += [each for each in found if each != by_mark.get(each.mark)]
        # The driver that wrote these has ended, or failed to write the rest and has since begun newer ones.
        newest = max(map(get_epoch, (*found, *partial)), default=0)
        other += [each for each in partial if each.epoch < newest]
        return [place for each in other for place in each.places]

    def list_files(self, process: Snapshotted) -> tuple[list[SnapshotFiles], ...]:
        """List the files of a process that fit the log, those of which some are missing, and those that do not fit."""
        fitting: list[SnapshotFiles] = []
        partial: list[SnapshotFiles] = []
        other: list[SnapshotFiles] = []
        stems: dict[str, list[Location]] = {}
        for place in list_places(self.layout.snapshots(process.id), "*.parquet"):
            if named := NAMED.fullmatch(place.name):
                stems.setdefault(named[1], []).append(place)
        made = {
            stem: SnapshotFiles(*read_name(places[0])[:2], tuple(places)) for stem, places in stems.items()
        }
        known = self.named.get(process.id, set())
        # A read of the ledger takes longer than an epoch may: only a driver that starts finds files of others.
        rows = self.stamps.find_rows({files.epoch for stem, files in made.items() if stem not in known})
        self.named[process.id] = {
            stem
            for stem, files in made.items()
            if stem in known or self.fits(process, stem, files, rows.get(files.epoch))
        }
        # The newest may be on their way into a bucket.
        self.named[process.id] |= {*sorted(known, key=lambda stem: int(stem.partition("-")[0]))[-3:]}
        for stem, files in made.items():
            if stem in self.named[process.id]:
                whole = len(files.places) == read_name(files.places[0])[2]
                (fitting if whole else partial).append(files)
            else:
                other.append(files)
        return fitting, partial, other

    def fits(self, process: Snapshotted, stem: str, files: SnapshotFiles, row: Epoch | None) -> bool:
        """Return whether files have the rows of an epoch of the log, as they are to be made now."""
        return row is not None and name_stem(process, self.stamps.stamp_now(row, files.mark)) == stem

    def find(self, process: Snapshotted, before: float) -> SnapshotFiles | None:
        """Return the newest files of which the watermark is not after an instant."""
        self.look_once(process)
        return next((each for each in self.found[process.id] if each.mark <= before), None)

    def find_at(self, process: Snapshotted, epoch: int) -> SnapshotFiles | None:
        """Return the newest files that have no row of a later epoch."""
        self.look_once(process)
        return next((each for each in self.found[process.id] if each.epoch <= epoch), None)

    def find_readable(
        self, process: Snapshotted, epoch: int, without: Collection[SnapshotFiles]
    ) -> SnapshotFiles | None:
        """Return the same for one who only reads, and deletes nothing; some files are left out."""
        if process.id not in self.found:
            self.look(process)
        return next(
            (each for each in self.found[process.id] if each.epoch <= epoch and each not in without), None
        )

    def look_once(self, process: Snapshotted) -> None:
        """Look which files there are, if that was not done."""
        if process.id not in self.found or self.restated != self.stamps.writer.restated:
            self.try_to_delete(process, self.look(process))

    def discard(self, process: Snapshotted, files: SnapshotFiles) -> None:
        """Go on without files of which one cannot be read, and delete them if that is possible."""
        self.found[process.id].remove(files)
        self.try_to_delete(process, files.places)

    def try_to_delete(self, process: Snapshotted, places: Iterable[Location]) -> None:
        """Delete files; whoever reads goes on where they cannot be."""
        try:
            delete_files(places)
        except OSError as error:
            log.warning("Snapshots of %s could not be deleted: %s", process.name, error)


def read_name(place: Location) -> tuple[int, int, int]:
    """Return the epoch, the watermark, and how many files there are of that moment."""
    named = NAMED.fullmatch(place.name)
    assert named
    return int(named[2]), int(named[3]), int(named[4])


def get_epoch(files: SnapshotFiles) -> int:
    """Return the epoch of files."""
    return files.epoch


def name_stem(process: Snapshotted, stamp: IndexStamp) -> str:
    """Return what the names of the files of a process and a stamp begin with, and no others do, wherever they are."""
    hashed = hashlib.sha256(f"{process.id} {stamp.to_json()}".encode()).hexdigest()[:16]
    return f"{stamp.epoch}-{stamp.horizon}-{hashed}"
