"""The snapshots of a driver's tails: when they are written and where, and from which of them tails are made again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.snapshot_files import SnapshotFiles, SnapshotFolders
from seamline.lake.store.drafted_files import name_draft, send_draft
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location
from seamline.lake.store.side_by_side import Threads
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.protocol.epoch import Epoch
from seamline.runtime.spill_folder import own_spill_folder
from seamline.spark.stream.derived.fold_process import FoldProcess
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")
EVERY, PER_KEY = 10.0, 5e-5
"""Seconds between snapshots, and for each key that they have, so that they take a small part of one processor."""
UPLOADING = Threads("upload", 2)


class SavedTails:
    """The snapshots of a pipeline's processes."""

    def __init__(self, writer: Writer, ids: Iterable[str]) -> None:
        self.files = SnapshotFolders(writer, writer.layout, ids)
        self.due: dict[str, float] = {}
        """When the next ones of a process are written, by the clock that only goes on."""
        self.drafts: dict[str, list[tuple[Path, Location]]] = {}
        """What is being written of a process on this machine's disk, and where it belongs."""

    def open(self, process: CompiledProcess, tails: FoldProcess, mark: float) -> SnapshotFiles | None:
        """Begin to make tails from the newest files that can be read; return them, None where there are none."""
        while files := self.files.find(process, mark):
            with suppress(OSError):
                if tails.open(mark, localize_files(files.places)):
                    return files
            log.warning("Snapshots of %s cannot be read, and are deleted: %s", process.name, files.places[0])
            self.files.discard(process, files)
        tails.open(mark)
        return None

    def save(self, process: CompiledProcess, tails: FoldProcess, epoch: Epoch) -> None:
        """Have the snapshots of tails written that have taken in an epoch, if it is time."""
        now = time.monotonic()
        if epoch.watermark is None or now < self.due.get(process.id, now):
            return
        self.due[process.id] = now + EVERY
        why = tails.find_saved()
        if why is None:
            return
        if why:
            log.warning("Snapshots of %s could not be written: %s", process.name, why)
        for draft in self.drafts.pop(process.id, ()):
            UPLOADING.submit(put_draft, draft)
        self.files.look(process)
        folder, mark = own_spill_folder() / "snapshots", to_unix_micros(epoch.watermark)
        places = self.files.name(process, epoch, mark, len(tails.parts))
        self.drafts[process.id] = [(name_draft(place, folder), place) for place in places]
        self.due[process.id] += PER_KEY * tails.save([str(path) for path, _ in self.drafts[process.id]])


def put_draft(draft: tuple[Path, Location]) -> None:
    """Put a file that was written where it belongs; a store that does not take it is told of."""
    try:
        send_draft(*draft)
    except Exception as error:  # noqa: BLE001 - whatever a store says, a cache is missing and nothing else
        log.warning("Snapshots could not be put into the bucket: %s", error)
