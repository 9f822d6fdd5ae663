"""What a place promises, and what it costs to ask: the differences between a disk and a bucket that others go by."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from seamline.lake.store.locations import Location

REOPENED = (0.1, 0.5, 2.0)
"""Seconds before each further attempt at what a store's client gave up after retrying."""


def is_on_disk(place: Location) -> TypeGuard[Path]:
    """Return whether a place is in a folder of this machine, with all that its system knows of files."""
    return isinstance(place, Path)


def may_be_torn(place: Location) -> TypeGuard[Path]:
    """Return whether a power cut may leave a file here that is not whole: an object is whole, or not there."""
    return is_on_disk(place)


def is_asking_free(place: Location) -> TypeGuard[Path]:
    """Return whether files may be asked for at any time: in a bucket each time is a request."""
    return is_on_disk(place)


def list_waits(place: Location) -> tuple[float, ...]:
    """List the seconds before each further attempt at a read that has failed; what a disk refuses, it refuses."""
    return () if is_on_disk(place) else REOPENED


@contextmanager
def lock_folder(folder: Location, name: str) -> Iterator[None]:
    """Keep other processes of this machine out, by a file of a name.

    In a bucket nobody is kept out: it has no such lock, and what it is for there, a lease does.
    """
    if not is_on_disk(folder):
        yield
        return
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
