"""Files copied from one place to another, on disk or in a bucket, in pieces: read, written, and read again there."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import SetupError
from seamline.plan.maintain.transfers import FoundFile

PIECE = 8 << 20
"""Bytes that are held of a file at once."""


def list_found_files(folder: Location) -> dict[str, FoundFile]:
    """List all files below a folder by the way to them; none if there is no such folder.

    Folders elsewhere that are linked into it are part of it. SetupError for one that cannot be listed.
    """
    if isinstance(folder, ObjectPath):
        return {
            way: FoundFile(way, about.st_size, about.st_mtime_ns, about.st_ino)
            for place, about in folder.walk_objects()
            if (way := str(place.relative_to(folder)))
        }
    found = {}
    for root, _, names in os.walk(folder, followlinks=True, onerror=refuse_unlisted):
        for name in names:
            path = Path(root, name)
            with suppress(FileNotFoundError):
                about, way = path.stat(), path.relative_to(folder).as_posix()
                found[way] = FoundFile(way, about.st_size, about.st_mtime_ns, about.st_ino)
    return found


def refuse_unlisted(error: OSError) -> None:
    """Raise SetupError for a folder that cannot be listed; one that has gone meanwhile has no files."""
    if not isinstance(error, FileNotFoundError):
        raise SetupError(
            f"{error.filename} cannot be listed: {error.strerror}.",
            hint="let this user read it: a part of a warehouse is none.",
        ) from error


def read_pieces(place: Location, size: int) -> Iterator[bytes]:
    """Read a file of a known size piece by piece; FileNotFoundError if it is not there."""
    if not isinstance(place, ObjectPath):
        with place.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
    elif size <= PIECE:
        yield place.read_bytes()
    else:
        for start in range(0, size, PIECE):
            yield place.bucket.get_range(place.key, start, min(PIECE, size - start))


def digest_file(place: Location, size: int) -> str:
    """Return the SHA-256 of a file; FileNotFoundError if it is not there."""
    sha = hashlib.sha256()
    for piece in read_pieces(place, size):
        sha.update(piece)
    return sha.hexdigest()


def copy_file(place: Location, to: Location, found: FoundFile) -> str:
    """Copy a file, whole or not at all, in place of what may be there; return the SHA-256 of what was read.

    FileNotFoundError if it is not there any more.
    """
    sha = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in read_pieces(place, found.size):
            sha.update(piece)
            yield piece

    if not isinstance(to, ObjectPath):
        write_file(to, pieces(), found.changed)
    elif found.size <= PIECE:
        to.write_bytes(b"".join(pieces()))
    else:
        to.bucket.put_pieces(to.key, read_elsewhere(pieces()), PIECE)
    return sha.hexdigest()


def read_elsewhere(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass pieces on that another thread reads: the client of a store sends no request while it asks for a piece."""
    with ThreadPoolExecutor(1) as thread:
        while (piece := thread.submit(next, pieces, None).result()) is not None:
            yield piece


def write_file(to: Path, pieces: Iterator[bytes], changed: int) -> None:
    """Write a file on disk beside its place, then put it there; it is as old as the one that it is a copy of.

    It is not synced: whoever copies many syncs them together.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = to.with_name(f".{uuid.uuid4().hex}.copy")
    try:
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        os.utime(draft, ns=(changed, changed))
        draft.replace(to)
    finally:
        draft.unlink(missing_ok=True)


def count_requests(place: Location, size: int, *, writes: bool) -> int:
    """Count the requests that reading or writing a file costs: none on disk, one for each piece in a bucket."""
    if not isinstance(place, ObjectPath):
        return 0
    pieces = max(-(-size // PIECE), 1)
    # To begin and to end an upload in pieces is a request each.
    return pieces + (2 if writes and pieces > 1 else 0)


def find_free_bytes(folder: Location) -> int | None:
    """Return how many bytes are free where a folder is, or would be made; None for a bucket."""
    if isinstance(folder, ObjectPath):
        return None
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.is_dir())).free


def are_nested(one: Location, other: Location) -> bool:
    """Return whether one place is the other, or within it."""
    if isinstance(one, ObjectPath) or isinstance(other, ObjectPath):
        if not (isinstance(one, ObjectPath) and isinstance(other, ObjectPath)):
            return False
        return one.is_relative_to(other) or other.is_relative_to(one)
    return one.is_relative_to(other) or other.is_relative_to(one)
