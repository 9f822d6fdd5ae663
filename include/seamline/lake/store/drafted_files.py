"""Files that are written on this machine's disk, whole or not at all, before they belong to a warehouse.

For whoever writes without a client of a store, as the child of a process that has one.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from seamline.lake.store.file_copies import copy_file
from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.plan.maintain.transfers import FoundFile


def name_draft(place: Location, folder: Path) -> Path:
    """Return where a file is written that belongs at a place: right there on disk, below a folder for a bucket."""
    return folder / place.name if isinstance(place, ObjectPath) else place


@contextmanager
def open_draft(path: Path) -> Iterator[BinaryIO]:
    """Open a file that has its name once the block has ended, with all of its bytes on disk; OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = name_unfinished(path, os.getpid())
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def name_unfinished(path: Path, pid: int) -> Path:
    """Return where a process writes a file that has no name yet."""
    return path.with_name(f"{path.name}.{pid}")


def forget_draft(path: Path, pid: int) -> None:
    """Delete what a process has left that was killed as it wrote."""
    with suppress(OSError):
        name_unfinished(path, pid).unlink()


def forget_drafts(path: Path) -> None:
    """Delete what any process has left that was killed as it wrote a file of this name."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*"):
        with suppress(OSError):
            left.unlink()


def send_draft(path: Path, place: Location) -> None:
    """Put a file that was written where it belongs; one that has never become whole is left out."""
    if path != place and path.exists():
        try:
            copy_file(path, place, FoundFile(path.name, path.stat().st_size, 0, 0))
        finally:
            path.unlink(missing_ok=True)
