"""Files as they are now, on this machine's disk for as long as somebody reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seamline.lake.store.file_copies import copy_file
from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.plan.maintain.transfers import FoundFile
from seamline.runtime.spill_folder import open_spill_folder


@contextmanager
def hold_files(root: Location, files: Mapping[str, FoundFile]) -> Iterator[dict[str, str]]:
    """Return where files of a place are on this machine; those of a bucket are copied, and the copies deleted.

    The copies of ``localize_files`` are of files as they were: what somebody has changed since would not be seen.
    """
    if not isinstance(root, ObjectPath):
        yield {name: str(root / name) for name in files}
        return
    with open_spill_folder() as folder:
        yield {
            name: hold_file(root / name, folder / f"{number}{Path(name).suffix}", about)
            for number, (name, about) in enumerate(files.items())
        }


def hold_file(place: Location, to: Path, about: FoundFile) -> str:
    """Copy a file; where it has gone meanwhile, nothing is there."""
    try:
        copy_file(place, to, about)
    except FileNotFoundError:
        to.unlink(missing_ok=True)
    return str(to)
