"""Files that are read a part at a time, wherever they are: of an object only the ranges that are asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO, cast

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath

AHEAD = 1 << 16
"""The bytes of the end of an object that are fetched at once: nearly all footers are within."""


def open_ranged_file(place: Location) -> BinaryIO:
    """Open a file to be read from any position; FileNotFoundError if there is none."""
    if isinstance(place, Path):
        return place.open("rb")
    return cast("BinaryIO", io.BufferedReader(RangedObject(place), AHEAD))


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
