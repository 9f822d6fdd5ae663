"""Files that one writer creates and no other: by a link on disk, by a conditional put in a bucket."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath


@contextmanager
def draft_file(
    folder: Location, data: bytes, *, before: Callable[[Path], None] = lambda draft: None
) -> Iterator[Callable[[str], bool]]:
    """Draft a file that has no name yet; OSError if nothing can be written.

    Returns what puts it under a name, whole or not at all: False if that is taken, OSError if nobody knows. On disk
    a draft is a file of its own that is linked, after ``before`` was done to it; to a bucket it is sent as it is.
    """
    if isinstance(folder, ObjectPath):
        yield lambda name: folder.bucket.create((folder / name).key, data)
        return
    draft = folder / f"_commit_{uuid.uuid4().hex}.json.tmp"
    try:
        draft.write_bytes(data)
        before(draft)
        yield lambda name: link_draft(draft, folder / name)
    finally:
        draft.unlink(missing_ok=True)


def link_draft(draft: Path, place: Path) -> bool:
    """Give a draft its name; False if that is taken, OSError if nobody knows."""
    try:
        os.link(draft, place)
    except FileExistsError:
        return False
    return True
