"""The Spark side: the stream and the build, whose tasks run the kernel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path


def drop_pyspark_zips(path: Sequence[str]) -> list[str]:
    """Leave out of a search path the zips of PySpark's sources that Spark puts before the package they are of.

    Python keeps nothing of a zip compiled: each process compiles what it imports, for 0.6 s.
    """
    found = PathFinder.find_spec("pyspark", [entry for entry in path if not entry.endswith(".zip")])
    if found is None or found.origin is None:
        return [*path]
    zips = Path(found.origin).resolve().parent / "python" / "lib"
    return [entry for entry in path if Path(entry).resolve().parent != zips]


sys.path[:] = drop_pyspark_zips(sys.path)
