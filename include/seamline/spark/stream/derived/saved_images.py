"""The snapshots of a driver's indexes of tables: when they are written, and from which an index is made again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

from seamline.lake.engine.changed_index import ChangedIndex
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.changed_rows import BATCH, IMAGES, load_snapshot, write_snapshot
from seamline.lake.joins.log_stamps import LogStamps
from seamline.lake.joins.snapshot_files import SnapshotFiles, SnapshotFolders
from seamline.lake.joins.snapshots import is_torn
from seamline.lake.store.drafted_files import name_draft, send_draft
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location
from seamline.lake.store.side_by_side import Threads
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.runtime.spill_folder import own_spill_folder
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")
EVERY, SHARE = 60.0, 20
"""Seconds between snapshots, and as how many times the time that one takes."""
WRITING = Threads("images", 1)


class SavedImages:
    """The snapshots of a pipeline's changelogs: a cache, for which no epoch fails and no view stands still."""

    def __init__(self, writer: Writer, ids: Iterable[str]) -> None:
        self.files = SnapshotFolders(writer, writer.layout, ids, form=IMAGES, restates=False)
        self.due: dict[str, float] = {}
        """When the next one of a changelog is written, by the clock that only goes on."""
        self.running: dict[str, Future[float]] = {}
        """What is being written of a changelog."""

    def load(self, changelog: CompiledChangelog, index: ChangedIndex, held: int, stamps: LogStamps) -> int:
        """Let an index begin with the newest snapshot that can be read, up to an epoch; return its epoch.

        ``stamps`` are those of indexes. duckdb.Error if the store or this machine is in trouble: whoever counts is told
        of it as of an index, and all snapshots stay.
        """
        try:
            while files := self.files.find_at(changelog, held):
                stamp = stamps.stamp(stamps.find_row(files.epoch), None).to_json()
                if not (why := try_to_load(index, files, stamp)):
                    return files.epoch
                log.warning("A snapshot of %s cannot be read, and is deleted: %s", changelog.name, why)
                self.files.discard(changelog, files)
        except OSError as error:
            raise duckdb.IOException(str(error)) from error
        return NOTHING

    def save(self, changelog: CompiledChangelog, index: ChangedIndex, epoch: Epoch) -> None:
        """Have a snapshot written of an index that has taken in an epoch, if it is time; errors are logged."""
        now, running = time.monotonic(), self.running.get(changelog.id)
        if now < self.due.get(changelog.id, now) or (running and not running.done()):
            return
        if running:
            self.due[changelog.id] = now + max(EVERY, SHARE * running.result())
            del self.running[changelog.id]
            self.tidy(changelog)
            return
        [place] = self.files.name(changelog, epoch, to_unix_micros(epoch.committed_at), 1)
        # Its transaction has the index as it is now, whatever later epochs change.
        cursor = index.con.cursor()
        cursor.begin()
        cursor.execute("SELECT count(*) FROM kept.images").fetchall()
        self.running[changelog.id] = WRITING.submit(write_image, (changelog, index, cursor, place))

    def tidy(self, changelog: CompiledChangelog) -> None:
        """Let go of the snapshots that are too many, or of another log."""
        try:
            self.files.tidy(changelog)
        except Exception as error:  # noqa: BLE001 - a cache: the stream goes on
            log.warning("Snapshots of %s could not be deleted: %s", changelog.name, error)

    def settle(self, id: str) -> None:
        """Wait for what is being written of a changelog: its index is closed next."""
        if running := self.running.pop(id, None):
            self.due[id] = time.monotonic() + max(EVERY, SHARE * running.result())


def try_to_load(index: ChangedIndex, files: SnapshotFiles, stamp: str) -> str:
    """Let an index begin with a snapshot; return why its file is torn or gone, empty if it is neither.

    Any other error is raised. Of what DuckDB reports only an input that it cannot use is the file's fault.
    """
    try:
        paths = localize_files(files.places)
    except FileNotFoundError as error:
        return str(error)
    try:
        load_snapshot(index, paths, stamp)
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        of_index = isinstance(error, duckdb.Error) and not isinstance(error, duckdb.InvalidInputException)
        if of_index or not is_torn(error):
            raise
        return str(error)
    return ""


def write_image(
    wanted: tuple[CompiledChangelog, ChangedIndex, duckdb.DuckDBPyConnection, Location],
) -> float:
    """Write a snapshot of an index where it belongs, by a cursor of its own; return how long that took."""
    changelog, index, cursor, place = wanted
    began = time.monotonic()
    try:
        # While its transaction lasts the index's file takes in nothing: a store may be slow.
        with closing(cursor):
            draft: Path = name_draft(place, own_spill_folder() / "images")
            batches = cursor.sql(index.named_sql("kept.images")).to_arrow_reader(BATCH)
            write_snapshot(draft, changelog, batches)
        send_draft(draft, place)
    except Exception as error:  # noqa: BLE001 - a cache is missing and nothing else
        log.warning("A snapshot of %s could not be written: %s", changelog.name, error)
    return time.monotonic() - began
