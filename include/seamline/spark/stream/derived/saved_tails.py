"""The snapshots of a driver's tails: when they are written and where, and from which of them tails are made again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.snapshot_files import SnapshotFile, SnapshotFiles
from seamline.lake.store.drafted_files import name_draft, send_draft
from seamline.lake.store.fetched_files import localize_file
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
        self.files = SnapshotFiles(writer, writer.layout, ids)
        self.due: dict[str, float] = {}
        """When the next ones of a process are written, by the clock that only goes on."""
        self.drafts: dict[str, tuple[Path, Location]] = {}
        """What is being written of a process on this machine's disk, and where it belongs."""

    def open(self, process: CompiledProcess, tails: FoldProcess, mark: float) -> SnapshotFile | None:
        """Begin to make tails from the newest file that can be read; return it, None where there is none."""
        while file := self.files.find(process, mark):
            with suppress(OSError):
                if tails.open(mark, localize_file(file.place)):
                    return file
            log.warning("Snapshots of %s cannot be read, and are deleted: %s", process.name, file.place)
            self.files.discard(process, file)
        tails.open(mark)
        return None

    def save(self, process: CompiledProcess, tails: FoldProcess, epoch: Epoch) -> None:
        """Have the snapshots of tails written that have taken in an epoch, if it is time."""
        now = time.monotonic()
        if epoch.watermark is None or now < self.due.get(process.id, now):
            return
        if draft := self.drafts.pop(process.id, None):
            UPLOADING.submit(put_draft, draft)
        self.files.look(process)
        place = self.files.place(process, epoch, to_unix_micros(epoch.watermark))
        path = name_draft(place, own_spill_folder() / "snapshots")
        self.drafts[process.id] = path, place
        keys, why = tails.save(str(path))
        if why:
            log.warning("The snapshots of %s could not be written: %s", process.name, why)
        self.due[process.id] = now + EVERY + keys * PER_KEY


def put_draft(draft: tuple[Path, Location]) -> None:
    """Put a file that was written where it belongs; a store that does not take it is told of."""
    try:
        send_draft(*draft)
    except Exception as error:  # noqa: BLE001 - whatever a store says, a cache is missing and nothing else
        log.warning("Snapshots could not be put into the bucket: %s", error)
