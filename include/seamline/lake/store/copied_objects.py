"""Files of others for a while on this machine: unlike those of a warehouse they change, so that no copy is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from seamline.lake.store.locations import Location
from seamline.runtime.spill_folder import own_spill_folder


@contextmanager
def copy_objects(files: Sequence[Location]) -> Iterator[list[str]]:
    """Return paths of files on this machine while the block runs: objects are copied, others are where they are."""
    folder = own_spill_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as within:
        paths = []
        for number, file in enumerate(files):
            path = file if isinstance(file, Path) else Path(within, f"{number}{file.suffix}")
            if path != file:
                path.write_bytes(file.read_bytes())
            paths.append(str(path))
        yield paths
