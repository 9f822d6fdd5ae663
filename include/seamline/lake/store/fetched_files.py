"""Files of a bucket on this machine's disk, where engines read them: fetched once, side by side, bounded in bytes.

Data files never change, so that a copy is right for as long as it is there. Files of a warehouse on disk are read
where they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.lake.store.side_by_side import Threads

FETCHING = Threads("fetch", 16)
MOST = 20 << 30
"""Bytes on disk, unless SEAMLINE_STORE_CACHE says otherwise: what was not read for longest goes first."""
IN_USE = 600.0
"""Seconds after its last use before a file may go: an engine may be about to open it."""
LOOK_EVERY = 1 << 28
"""Bytes fetched between two looks at how much there is."""
_guard = threading.Lock()
_coming: dict[str, Future[None]] = {}
"""By the path of the copy: what was begun to be fetched."""


@dataclass
class Fetched:
    """What this process has fetched since it last looked at how much there is."""

    bytes: int = 0
    """How much."""


_fetched = Fetched()


def localize_file(place: str | Location) -> str:
    """Return the path of one file on this machine, as ``localize_files`` does."""
    return localize_files([place])[0]


def localize_files(places: Iterable[str | Location]) -> list[str]:
    """Return the paths of files on this machine, fetching those that are not there.

    A place is a path on disk, or the URL of an object. FileNotFoundError if an object is not there.
    """
    found: list[str] = []
    missing: list[tuple[ObjectPath, str]] = []
    for each in places:
        text = str(each)
        if "://" not in text:
            found.append(text)
            continue
        place = ObjectPath.parse(text)
        path = name_copy(place)
        found.append(path)
        try:
            touch_copy(path)
        except FileNotFoundError:
            missing.append((place, path))
    if missing:
        FETCHING.map(fetch_or_await, missing)
        shrink_cache()
    return found


def look_at_files(places: Iterable[str | Location]) -> list[tuple[str, os.stat_result]]:
    """Return the paths of files on this machine, as ``localize_files`` does, each with what its system says of it."""
    return [(path, os.stat(path)) for path in localize_files(places)]  # noqa: PTH116 - a Path for each takes longer than this


def fetch_ahead(places: Iterable[Location]) -> None:
    """Begin to fetch objects that somebody is about to read, who is told what goes wrong; nothing is done on disk."""
    for place in places:
        if isinstance(place, ObjectPath):
            path = name_copy(place)
            with _guard:
                if path not in _coming and not os.path.exists(path):  # noqa: PTH110
                    _coming[path] = FETCHING.submit(fetch_early, (place, path))


def fetch_early(each: tuple[ObjectPath, str]) -> None:
    """Fetch an object that may not be asked for."""
    try:
        fetch_one(*each)
        shrink_cache()
    finally:
        with _guard:
            _coming.pop(each[1], None)


def fetch_or_await(each: tuple[ObjectPath, str]) -> None:
    """Fetch an object, unless that was begun before, and succeeds; what waits for a thread may be behind this one."""
    coming = _coming.get(each[1])
    if coming is not None and coming.cancel():
        _coming.pop(each[1], None)
        coming = None
    if coming is None or coming.exception() is not None:
        fetch_one(*each)


def name_copy(place: ObjectPath) -> str:
    """Name the copy of an object; its key is in it, since engines read partitions from paths."""
    bucket = re.sub(r"\W+", "-", place.url)
    return f"{cache_folder()}/{bucket}-{hashlib.sha256(place.url.encode()).hexdigest()[:8]}/{place.key}"


def cache_folder() -> str:
    """Return the folder of the copies, by setting."""
    return os.environ.get("SEAMLINE_STORE_FILES") or f"{os.environ.get('SEAMLINE_HOME', '.seamline')}/files"


def fetch_one(place: ObjectPath, path: str) -> None:
    """Fetch an object into its copy, whole or not at all."""
    keep_copy(path, place.read_bytes())


def keep_copy(path: str, data: bytes) -> None:
    """Put bytes into a copy, whole or not at all."""
    folder = os.path.dirname(path)  # noqa: PTH120 - there are many
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    handle, fresh = tempfile.mkstemp(dir=folder, prefix=".fetched-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # A power cut would leave a copy that is empty, and believed for ever.
            os.fdatasync(file.fileno())
        touch_copy(fresh)
        os.replace(fresh, path)  # noqa: PTH105
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh)  # noqa: PTH108
        raise
    with _guard:
        _fetched.bytes += len(data)


def touch_copy(path: str) -> None:
    """Note that a copy was used; what else is known of it stays, since caches tell files apart by that."""
    os.utime(path, (time.time(), 0))


def shrink_cache(*, force: bool = False) -> int:
    """Delete the copies that were not read for longest until there are no more bytes than allowed; return how many."""
    with _guard:
        if _fetched.bytes < LOOK_EVERY and not force:
            return 0
        _fetched.bytes = 0
    found = sorted(list_copies())
    excess = sum(size for _, size, _ in found) - int(os.environ.get("SEAMLINE_STORE_CACHE", MOST))
    gone = 0
    for at, size, path in found:
        if excess <= 0 or at > time.time() - IN_USE:
            break
        with suppress(FileNotFoundError):
            # It may have been used since it was listed.
            if path.stat().st_atime == at:
                path.unlink()
                excess -= size
                gone += 1
    return gone


def list_copies() -> Iterator[tuple[float, int, Path]]:
    """List the copies with the seconds of their last use and their bytes; another process may delete some meanwhile."""
    for each in Path(cache_folder()).rglob("*"):
        with suppress(FileNotFoundError):
            about = each.stat()
            if stat.S_ISREG(about.st_mode):
                yield about.st_atime, about.st_size, each
