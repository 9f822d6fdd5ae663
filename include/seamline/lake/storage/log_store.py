"""The log of a Delta table: one JSON file a commit, put there by who comes first.

A commit is a file of its own, written whole and then linked under its number, which fails where that number is taken:
what excludes two writers is the file system, for this code and for deltalake alike. A bucket's store creates an object
only where there is none, and excludes them so.
"""

from __future__ import annotations

import errno
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

from seamline.lake.storage import log_entries
from seamline.lake.storage.durability import sync_file
from seamline.lake.storage.log_entries import Commit
from seamline.lake.store.created_files import draft_file
from seamline.lake.store.locations import Location, list_names
from seamline.model.errors import NotWhole, StoreRefused

FOLDER = "_delta_log"
LAST = "_last_checkpoint"
ENTRY = re.compile(r"\d{20}\.(json|checkpoint\..*)")
"""The name of a version's entry, or of a checkpoint."""
DECIDED = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR}
)
"""Errors of a link that mean that it was not made; after any other that is unknown, as on a share that hangs."""
PATIENCE = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds before each further attempt at a commit of which nobody knows whether it is there."""


def entry_path(root: Location, version: int) -> Location:
    """Return the place of a version's entry."""
    return root / FOLDER / name_entry(version)


def name_entry(version: int) -> str:
    """Name the file of a version."""
    return f"{version:020d}.json"


def read_commit(root: Location, version: int) -> Commit | None:
    """Read a commit; None if there is no such version, or its file was cleaned away after a checkpoint.

    NotWhole if the file is no whole commit: a power cut may leave it empty, cut off or filled with zeros.
    """
    file = entry_path(root, version)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return log_entries.parse_entry(version, data)
    except ValueError as error:
        raise NotWhole(str(root), str(file), version, str(error)) from error


@contextmanager
def draft_entry(root: Location, data: bytes, *, synced: bool) -> Iterator[Callable[[int], bool]]:
    """Draft an entry that has no number yet; OSError if nothing can be written.

    Returns what puts it under a version, whole or not at all: False if that is taken, OSError if nobody knows.
    """
    with draft_file(root / FOLDER, data, before=sync_file if synced else leave_unsynced) as put:
        yield lambda version: put(name_entry(version))


def leave_unsynced(draft: Path) -> None:
    """Do nothing to a draft: of what a power cut takes of it Kafka has another."""


def retry_commit(
    root: Location, version: int, attempt: Callable[[], bool], *, insists: bool
) -> Commit | None:
    """Retry a commit under a version until it is known what has that version; return it, or None if ours just landed.

    That the version is taken proves nothing: a share may say so of a link that it has made, a store of an object that
    an attempt before has put there, or of one that is not there. Neither does an error. What is read there counts.
    OSError if nothing was done, or where nobody knows to the end and nobody ``insists``: it may land later then.
    """
    problem = OSError(errno.EIO, f"{entry_path(root, version)} is reported to exist, but it is missing")
    for wait in chain(PATIENCE, repeat(PATIENCE[-1]) if insists else ()):
        time.sleep(wait)
        try:
            if attempt():
                return None
        except OSError as error:
            problem = error
        try:
            if (found := read_commit(root, version)) is not None:
                return found
        except OSError as error:
            problem = error
        if problem.errno in DECIDED or isinstance(problem, StoreRefused):
            break
    raise problem


def has_beginning(root: Location) -> bool:
    """Return whether a log has what it begins with, which is copied last: its first entry, or a checkpoint."""
    names = list_names(root / FOLDER)
    return entry_path(root, 0).name in names or any(".checkpoint." in name for name in names)


def read_last_checkpoint(root: Location) -> int:
    """Read the version of the last checkpoint, before which files of commits may be gone; -1 for none."""
    try:
        return int(json.loads((root / FOLDER / LAST).read_bytes())["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1
