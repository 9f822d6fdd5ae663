"""What is on disk for certain, whatever becomes of the power: which tables are synced, and how (decision 20).

A synced commit means, in this order: every earlier commit of the table, with its files; its own files, and their
folders; its entry; the entry's link; the log's folder. What is synced names nothing that is not: whoever commits a
generation, or decides on a position of the log, has the disk synced first. After an error of a sync nobody knows what
is on disk, and the kernel may have forgotten what was to be written: the process ends, and the next one looks.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_on_disk
from seamline.runtime.process_exit import exit_process

ALWAYS = frozenset({"control", "manifest", "certificates", "builds", "generations", "counts"})
"""Tables, by the names of their folders, whose rows nothing upstream can return again."""
STATED = frozenset({"quarantine", "master"})
"""Tables whose rows Kafka can return again: synced where the stream asks for it."""
DURABILITY = "seamline.durability"
"""App id: a stream's setting, by its place in ``definition.DURABILITY``, stated in those."""
OFF = "off"
FAILED = 74
"""The exit code of a process whose disk did not take what it was given: EX_IOERR of sysexits."""
FEW = 3
log = logging.getLogger("seamline.lake")


def is_sync_enabled() -> bool:
    """Return whether anything is synced: ``SEAMLINE_FSYNC=off`` is for tables that are thrown away, as a test's."""
    return os.environ.get("SEAMLINE_FSYNC", "") != OFF


def sync_files(paths: Iterable[Location]) -> None:
    """Sync the contents of files to disk, several at once where there are many: disks do that in one go.

    Here and below, what is in a bucket was safe before its store said that it is there.
    """
    wanted = [path for path in paths if is_on_disk(path)]
    if len(wanted) <= FEW:
        for path in wanted:
            sync_file(path)
        return
    with ThreadPoolExecutor(8, thread_name_prefix="sync") as threads:
        list(threads.map(sync_file, wanted))


def sync_file(path: Location) -> None:
    """Sync the content of a file to disk."""
    if is_on_disk(path) and is_sync_enabled():
        sync_or_exit(path, os.O_RDONLY, os.fdatasync)


def sync_folders(paths: Iterable[Location], *, above: Location | None = None) -> None:
    """Sync the names in folders to disk, the innermost first; also those of the folders up to ``above``."""
    wanted = {path for path in paths if is_on_disk(path)}
    if above is not None and is_on_disk(above):
        wanted |= {each for path in list(wanted) for each in path.parents if each.is_relative_to(above)}
    for path in sorted(wanted, key=lambda path: -len(path.parts)):
        sync_folder(path)


def sync_folder(path: Location) -> None:
    """Sync the names in a folder to disk; some file systems know no such thing, and keep names by themselves."""

    def named(handle: int) -> None:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    if is_on_disk(path) and is_sync_enabled():
        sync_or_exit(path, os.O_RDONLY | os.O_DIRECTORY, named)


def sync_disk(folder: Location) -> None:
    """Have all on disk that was written to the file system of a folder, by whomever; however much it has grown.

    For what has gone on for hours unsynced: epochs, before something that is synced names them.
    """
    if is_on_disk(folder) and is_sync_enabled():
        sync_or_exit(folder, os.O_RDONLY | os.O_DIRECTORY, file_system)


def file_system(handle: int) -> None:
    """Sync the file system of an open file; all of them where only one cannot be asked for."""
    sync = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if sync is None:
        os.sync()
    elif sync(handle):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def sync_or_exit(path: Path, flags: int, sync: Callable[[int], None]) -> None:
    """Open a file or folder and sync it; an error of the sync ends the process."""
    handle = os.open(path, flags)
    try:
        sync(handle)
    except OSError as error:
        log.critical(
            "%s could not be synced: %s. What is on disk is unknown; this process ends.", path, error
        )
        exit_process(FAILED)
    finally:
        os.close(handle)
