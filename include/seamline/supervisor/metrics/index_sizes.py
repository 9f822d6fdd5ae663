"""How large the indexes of a stream are on this machine: files that its driver can make again from the tables."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from seamline.lake.storage.layout import home_folder

INDEXES = ("ids", "joined", "changed")
"""The folders of indexes: event ids within the horizon, rows of joins, rows of a changelog's table."""


def read_index_sizes(pipeline: str) -> dict[str, int]:
    """Read how many bytes each index has; those that there are."""
    folder = home_folder() / "streams" / pipeline
    return {name: measure_folder(folder / name) for name in INDEXES if (folder / name).is_dir()}


def measure_folder(folder: Path) -> int:
    """Add up the files below a folder; what is deleted meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).stat().st_size
    return total
