"""Files that are read a part at a time, wherever they are: of an object only the ranges that are asked for."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import BinaryIO, cast

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath

PIECE = 8 << 20
"""Bytes that are in memory at once while a file is hashed."""
AHEAD = 1 << 16
"""The bytes of the end of an object that are fetched at once: nearly all footers are within."""


def open_ranged_file(place: Location) -> BinaryIO:
    """Open a file to be read from any position; FileNotFoundError if there is none."""
    if isinstance(place, Path):
        return place.open("rb")
    return cast("BinaryIO", io.BufferedReader(RangedObject(place), AHEAD))


def hash_file(place: Location) -> str:
    """Return the SHA-256 of a file, in hexadecimal; FileNotFoundError."""
    found = hashlib.sha256()
    with open_ranged_file(place) as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


def stamp_file(place: Location) -> str:
    """Return what changes whenever a file is written, even as it was; FileNotFoundError."""
    about = place.stat()
    return f"{about.st_size}-{about.st_mtime_ns}-{about.st_ino}"


class RangedObject(io.RawIOBase):
    """An object as a file that can be sought in."""

    def __init__(self, place: ObjectPath) -> None:
        self.place, self.size, self.at = place, place.stat().st_size, 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be sought in."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        self.at = base + offset
        return self.at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read as much as a buffer takes."""
        count = min(len(buffer), max(self.size - self.at, 0))
        if count:
            buffer[:count] = self.place.bucket.get_range(self.place.key, self.at, count)
            self.at += count
        return count
