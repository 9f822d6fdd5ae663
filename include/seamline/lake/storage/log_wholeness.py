"""Where a table's log ends: before the first file that is not whole, above the newest whole checkpoint.

deltalake takes an empty commit for one that says nothing, passes over one that is cut off between two lines, and opens
nothing where a commit or the newest checkpoint is broken otherwise. So a log is looked at before it is believed, as
far up as deltalake reads it: entries below a checkpoint are not looked at.
"""

from __future__ import annotations

import logging
import os
import re
import time

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from seamline.lake.storage import log_entries, log_store
from seamline.lake.storage.log_entries import Commit
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location, list_names
from seamline.lake.store.promises import list_waits, may_be_torn
from seamline.model.errors import NotFound, NotWhole, StoreRefused

CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:(\d{10})\.(\d{10})\.)?parquet")
MAGIC = b"PAR1"
log = logging.getLogger("seamline.lake")


def open_whole_table(root: Location) -> tuple[DeltaTable, Commit | None]:
    """Open a table at its newest version, or before the first entry that is not whole; return that commit too.

    It is None where log clean-up has taken its entry.

    NotFound if there is no table; NotWhole if nothing can be opened before what is broken.
    """
    try:
        return open_whole_once(root)
    except DeltaError:
        # A start after a power cut has removed its broken end meanwhile.
        return open_whole_once(root)


def open_whole_once(root: Location) -> tuple[DeltaTable, Commit | None]:
    """Do that; DeltaError where a log that cannot be opened has nothing broken."""
    try:
        handle = open_delta_handle(root)
    except TableNotFoundError:
        raise NotFound(f"There is no table at {root}.", hint="check that the stream has run.") from None
    except DeltaError:
        if (checkpoint := broken_checkpoint(root)) is not None:
            raise checkpoint from None
        if (broken := find_broken_entry(root)) is None:
            raise
        return open_before_broken(root, broken)
    if may_be_torn(root) and (broken := find_broken_entry(root, until=int(handle.version()))) is not None:
        return open_before_broken(root, broken)
    return handle, log_store.read_commit(root, int(handle.version()))


def open_delta_handle(root: Location, version: int | None = None) -> DeltaTable:
    """Open a table by deltalake, at its newest version or an older one; it takes a store's settings as we do.

    To open a table changes nothing, so that what its client gave up after retrying is tried again a few times.
    """
    for wait in list_waits(root):
        try:
            return read_delta_handle(root, version)
        except StoreRefused:
            raise
        except OSError as error:
            log.warning("%s could not be opened: %s", root, error)
            time.sleep(wait)
    return read_delta_handle(root, version)


def read_delta_handle(root: Location, version: int | None) -> DeltaTable:
    """Read a table's log by deltalake, once."""
    with explain_errors(root):
        return DeltaTable(str(root), version=version)


def open_before_broken(root: Location, broken: NotWhole) -> tuple[DeltaTable, Commit | None]:
    """Open a table at the version before one that is broken, which is raised where there is none."""
    if not broken.version:
        raise broken
    handle = open_delta_handle(root, version=broken.version - 1)
    return handle, log_store.read_commit(root, int(handle.version()))


def find_broken_entry(root: Location, *, until: int | None = None) -> NotWhole | None:
    """Find the first entry above the newest checkpoint that is not whole, up to a version or the last there is."""
    version = find_whole_checkpoint(root) + 1
    while until is None or version <= until:
        file = log_store.entry_path(root, version)
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            break
        if why := log_entries.find_entry_flaw(data):
            return NotWhole(str(root), str(file), version, why)
        version += 1
    return None


def find_whole_checkpoint(root: Location) -> int:
    """Find the version of the newest whole checkpoint, -1 for none; the log is listed where its mark does not say."""
    marked = log_store.read_last_checkpoint(root)
    if marked >= 0 and not flaw_of_checkpoint(classic_checkpoint_path(root, marked)):
        return marked
    return max((version for version, files in list_checkpoints(root).items() if all_whole(files)), default=-1)


def checkpoints_of(root: Location, version: int) -> list[Location]:
    """List the files of a version's checkpoint."""
    file = classic_checkpoint_path(root, version)
    return [file] if file.exists() else list_checkpoints(root).get(version, [])


def broken_checkpoint(root: Location) -> NotWhole | None:
    """Describe what is wrong with the checkpoint from which deltalake would open a table; None if nothing is."""
    marked = log_store.read_last_checkpoint(root)
    found = list_checkpoints(root)
    newest = max(found, default=-1)
    if marked > newest:
        file = classic_checkpoint_path(root, marked)
        return NotWhole(str(root), str(file), marked, "it is missing, but the log's mark names it")
    for file in found.get(newest, ()):
        if why := flaw_of_checkpoint(file):
            return NotWhole(str(root), str(file), newest, why)
    return None


def list_checkpoints(root: Location) -> dict[int, list[Location]]:
    """List the checkpoints by their versions, each with its files; whose parts are not all there is left out."""
    found: dict[int, list[Location]] = {}
    for name in list_names(root / log_store.FOLDER):
        if match := CHECKPOINT.fullmatch(name):
            found.setdefault(int(match[1]), []).append(root / log_store.FOLDER / name)
    return {version: files for version, files in found.items() if len(files) == parts_of(files)}


def parts_of(files: list[Location]) -> int:
    """Return how many files a checkpoint has, by the name of one."""
    match = CHECKPOINT.fullmatch(files[0].name)
    return int(match[3]) if match and match[3] else 1


def all_whole(files: list[Location]) -> bool:
    """Return whether every file of a checkpoint is whole."""
    return not any(map(flaw_of_checkpoint, files))


def classic_checkpoint_path(root: Location, version: int) -> Location:
    """Name the checkpoint of a version that is one file."""
    return root / log_store.FOLDER / f"{version:020d}.checkpoint.parquet"


def flaw_of_checkpoint(file: Location) -> str:
    """Describe why a checkpoint is no whole Parquet file, by its two ends; empty if it is."""
    if not may_be_torn(file):
        return "" if file.is_file() else "it is missing"
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if size < 3 * len(MAGIC):
                return "it is empty" if not size else "it is truncated"
            first = opened.read(len(MAGIC))
            opened.seek(-2 * len(MAGIC), os.SEEK_END)
            last = opened.read()
    except FileNotFoundError:
        return "it is missing"
    if first != MAGIC or last[len(MAGIC) :] != MAGIC or int.from_bytes(last[: len(MAGIC)], "little") > size:
        return "it is not a Parquet file, or it is truncated"
    return ""
