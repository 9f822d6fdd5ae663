"""Files of others for a while on this machine: unlike those of a warehouse they change, so that no copy is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from seamline.lake.store.file_copies import copy_file
from seamline.lake.store.locations import Location, path_below
from seamline.plan.maintain.transfers import FoundFile
from seamline.runtime.spill_folder import own_spill_folder


@contextmanager
def copy_objects(files: Sequence[Location], below: Location) -> Iterator[list[str]]:
    """Return paths of files on this machine while the block runs: objects are copied, others are where they are.

    Copies have the paths that objects have ``below`` a folder, as ``part=1/rows.parquet``.
    """
    folder = own_spill_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as within:
        paths = []
        for file in files:
            path = file if isinstance(file, Path) else Path(within, path_below(file, below) or file.name)
            if path != file:
                path.parent.mkdir(parents=True, exist_ok=True)
                copy_file(file, path, FoundFile(path.name, file.stat().st_size, 0, 0))
            paths.append(str(path))
        yield paths
