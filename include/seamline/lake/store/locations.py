"""Places in a warehouse, on disk or in a bucket: found by text, created once, listed and cleared away."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from seamline.lake.store.bucket import SCHEMES
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import SetupError

Location = Path | ObjectPath
PLAIN = re.compile(r"[a-z0-9]+://[A-Za-z0-9@._=-][A-Za-z0-9@._/=-]*")
"""deltalake looks for the checkpoint mark of a table below ``the lake`` at ``the%20lake``."""


def parse_location(text: str) -> Location:
    """Read a folder's path or the URL of a place in a bucket; SetupError for another scheme."""
    scheme, found, rest = text.partition("://")
    if text.startswith("~"):
        raise SetupError(
            f"{text!r} begins with ~, which only a shell reads as a home.", hint="write the whole path."
        )
    if not found:
        return Path(text).resolve()
    if scheme == "file":
        return Path(text.removeprefix("file://")).resolve()
    if scheme not in SCHEMES:
        # A password may be before the host.
        named, known = f"{scheme}://{rest.rpartition('@')[2]}", ", ".join(f"{each}://" for each in SCHEMES)
        small = scheme.lower() in (*SCHEMES, "file")
        raise SetupError(
            f"{named!r} is no place for a warehouse.",
            hint=f"write {scheme.lower()}:// in small letters."
            if small
            else f"name a folder, or a URL that begins with one of {known}.",
        )
    if ":" in rest or (scheme == "s3" and "@" in rest):
        # Keys may be in it: it is not repeated.
        raise SetupError(
            "A place in a bucket was named with a user, keys or a port in it.",
            hint=f"name {scheme}://BUCKET/PREFIX; docs/stores.md says where keys and the address go.",
        )
    if not rest.strip("/"):
        raise SetupError(f"{text!r} names no bucket.", hint=f"name {scheme}://BUCKET/PREFIX.")
    if not PLAIN.fullmatch(text):
        raise SetupError(
            f"{text!r} has a character that not every client of a store spells alike.",
            hint="name a place with letters, digits and . _ - / = only.",
        )
    return ObjectPath.parse(text)


def find_nearest_folder(place: Location) -> Location:
    """Return the nearest folder above a place that is there; in a bucket the place itself, which needs none."""
    if isinstance(place, ObjectPath):
        return place
    return next(each for each in place.parents if each.is_dir())


def list_places(folder: Location, pattern: str) -> list[Location]:
    """List the files and folders below a folder that match a pattern, in order."""
    if isinstance(folder, ObjectPath):
        return [*sorted(folder.glob(pattern))]
    return [*sorted(folder.glob(pattern))]


def list_names(folder: Location) -> list[str]:
    """List the names of the files right in a folder; FileNotFoundError if a folder on disk is not there."""
    if isinstance(folder, ObjectPath):
        return [each.key.rpartition("/")[2] for each in folder.bucket.list_folder(folder.key)[0]]
    with os.scandir(folder) as found:
        return [each.name for each in found if not each.is_dir()]


def path_below(place: Location, folder: Location) -> str:
    """Return the way from a folder to a place below it."""
    if isinstance(place, ObjectPath) and isinstance(folder, ObjectPath):
        return str(place.relative_to(folder))
    assert isinstance(place, Path) and isinstance(folder, Path)
    return place.relative_to(folder).as_posix()


def delete_files(places: Iterable[Location]) -> None:
    """Delete files, also those that are gone already; of a bucket many with one request."""
    keys: dict[str, list[str]] = {}
    for place in places:
        if isinstance(place, ObjectPath):
            keys.setdefault(place.url, []).append(place.key)
        else:
            place.unlink(missing_ok=True)
    for url, some in keys.items():
        ObjectPath(url).bucket.delete(some)


def move_file(place: Location, to: Location) -> None:
    """Give a file another name; in a bucket by a copy, after which it is deleted."""
    if isinstance(place, ObjectPath) and isinstance(to, ObjectPath):
        place.rename(to)
    else:
        assert isinstance(place, Path) and isinstance(to, Path)
        place.rename(to)


def copy_unchanging_file(place: Location, to: Location) -> None:
    """Give a file that never changes a second place in the warehouse: by a link, or a copy where there are none."""
    if isinstance(place, ObjectPath) and isinstance(to, ObjectPath):
        place.bucket.copy(place.key, to.key)
        return
    assert isinstance(place, Path) and isinstance(to, Path)
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(place, to)
    except OSError:
        shutil.copy2(place, to)


def list_all_files(folder: Location) -> list[Location]:
    """List all files below a folder, in the order of their names.

    An empty object is no file of a warehouse: it marks a folder.
    """
    if isinstance(folder, ObjectPath):
        return [*sorted(each for each, about in folder.walk_objects() if about.st_size)]
    return [each for each in sorted(folder.rglob("*")) if each.is_file()]


def copy_folder(folder: Location, to: Location) -> None:
    """Give all files of a folder, which never change, a second place."""
    for each in list_all_files(folder):
        copy_unchanging_file(each, to / path_below(each, folder))


def move_folder(folder: Location, to: Location) -> None:
    """Give a table's folder another name.

    In a bucket data files are copied before the log, and its first entry last, without which there is no table.
    """
    if isinstance(folder, Path) and isinstance(to, Path):
        to.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(to)
        return
    for way in sorted((path_below(each, folder) for each in list_all_files(folder)), key=first_entry_last):
        copy_unchanging_file(folder / way, to / way)
    delete_folder(folder)


def first_entry_last(way: str) -> tuple[bool, bool, bool, bool, str]:
    """Order the files of a table: data, entries, checkpoints, the mark of the last, and the entry that begins it.

    A checkpoint opens a table whose first entry was cleaned away, and so comes after all entries above it.
    """
    begins = way.endswith(f"_delta_log/{0:020d}.json")
    log = "_delta_log/" in way
    return begins, way.endswith("_last_checkpoint"), log and way.endswith(".parquet"), log, way


def delete_folder(place: Location) -> None:
    """Delete a folder with all that is in it, if it is there."""
    if isinstance(place, ObjectPath):
        delete_files(each for each, _ in place.walk_objects())
    else:
        shutil.rmtree(place, ignore_errors=True)


def create_file(place: Location, data: bytes) -> bool:
    """Create a file where there is none; False if there is one, OSError if nobody knows."""
    if isinstance(place, ObjectPath):
        return place.bucket.create(place.key, data)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        draft.write_bytes(data)
        os.link(draft, place)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def replace_file(
    place: Location, data: bytes, *, before: Callable[[Path], None] = lambda draft: None
) -> None:
    """Write a file whole or not at all, in place of what may be there; ``before`` is done to the draft on disk."""
    if isinstance(place, ObjectPath):
        place.write_bytes(data)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        fresh.write_bytes(data)
        before(fresh)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
