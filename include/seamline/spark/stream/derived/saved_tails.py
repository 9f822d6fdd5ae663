"""The snapshots of a driver's tails: when they are written and where, and from which of them tails are made again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.snapshot_files import SnapshotFiles, SnapshotFolders
from seamline.lake.store.drafted_files import forget_drafts, name_draft, send_draft
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location
from seamline.lake.store.side_by_side import Threads
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.protocol.epoch import Epoch
from seamline.runtime.spill_folder import own_spill_folder
from seamline.spark.stream.derived.fold_process import FoldProcess
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")
EVERY, PER_KEY = 10.0, 5e-5
"""Seconds between snapshots, and for each key that they have."""
UPLOADING = Threads("upload", 2)


class SavedTails:
    """The snapshots of a pipeline's processes: a cache, for which no epoch fails and no view stands still.

    ``ids`` are those of all that may have snapshots: the files of others go.
    """

    def __init__(self, writer: Writer, ids: Iterable[str]) -> None:
        self.files = SnapshotFolders(writer, writer.layout, ids)
        self.due: dict[str, float] = {}
        """When the next ones of a process are written, by the clock that only goes on."""
        self.waited: dict[str, int] = {}
        """How often those of a process were not written yet when the next ones were due."""
        self.drafts: dict[str, list[tuple[Path, Location]]] = {}
        """What is being written of a process on this machine's disk, and where it belongs."""
        self.sent: dict[str, list[Future[None]]] = {}
        """What is being put where it belongs, of a process."""
        try:
            self.files.clear()
        except Exception as error:  # noqa: BLE001 - a cache: the stream starts without it
            log.warning("Old snapshots could not be deleted: %s", error)

    def open(self, process: CompiledProcess, tails: FoldProcess, mark: float) -> SnapshotFiles | None:
        """Begin to make tails from the newest files that can be read; return them, None where there are none."""
        while files := self.files.find(process, mark):
            with suppress(FileNotFoundError):
                if tails.open(mark, localize_files(files.places)):
                    return files
            log.warning("Snapshots of %s cannot be read, and are deleted: %s", process.name, files.places[0])
            self.files.discard(process, files)
        tails.open(mark)
        return None

    def save(self, process: CompiledProcess, tails: FoldProcess, epoch: Epoch) -> None:
        """Have the snapshots of tails written that have taken in an epoch, if it is time.

        FunctionUnusable where the tails are no more; any other error is logged.
        """
        now = time.monotonic()
        if epoch.watermark is None or now < self.due.get(process.id, now):
            return
        self.due[process.id] = now + EVERY
        try:
            if self.publish(process, tails):
                self.begin(process, tails, epoch, to_unix_micros(epoch.watermark))
        except FunctionUnusable:
            raise
        except Exception as error:  # noqa: BLE001 - the epoch is committed, whatever becomes of a cache
            log.warning("Snapshots of %s could not be written: %s", process.name, error)

    def publish(self, process: CompiledProcess, tails: FoldProcess) -> bool:
        """Put what was written where it belongs; return whether the next may be begun.

        They may not while the last ones are being written, or those before are on their way; where the last ones were
        late, the next are later by nine times as long as these were waited for.
        """
        if not all(each.done() for each in self.sent.get(process.id, ())):
            return False
        why = tails.find_saved()
        if why is None:
            self.waited[process.id] = self.waited.get(process.id, 0) + 1
            return False
        drafts = self.drafts.pop(process.id, ())
        if why and drafts:
            log.warning("Snapshots of %s could not be written: %s", process.name, why)
            # A child that ended with the process that it writes for leaves what it had begun.
            for path, _ in drafts:
                forget_drafts(path)
        self.sent[process.id] = [UPLOADING.submit(put_draft, each) for each in drafts if each[0] != each[1]]
        self.files.tidy(process)
        waited = self.waited.pop(process.id, 0)
        self.due[process.id] += 9 * EVERY * waited
        return not waited

    def begin(self, process: CompiledProcess, tails: FoldProcess, epoch: Epoch, mark: int) -> None:
        """Have the next ones written."""
        folder = own_spill_folder() / "snapshots"
        places = self.files.name(process, epoch, mark, len(tails.parts))
        self.drafts[process.id] = [(name_draft(place, folder), place) for place in places]
        self.due[process.id] += PER_KEY * tails.save([str(path) for path, _ in self.drafts[process.id]])


def put_draft(draft: tuple[Path, Location]) -> None:
    """Put a file that was written where it belongs; a store that does not take it is told of."""
    try:
        send_draft(*draft)
    except Exception as error:  # noqa: BLE001 - whatever a store says, a cache is missing and nothing else
        log.warning("Snapshots could not be put into the bucket: %s", error)
