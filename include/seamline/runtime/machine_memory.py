"""The memory that this process may use."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path

CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def read_memory_limit(limits: Iterable[Path] = CGROUP_LIMITS) -> int:
    """Read the bytes of memory that this process may use at most: the machine's, or the container's around it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in limits:
        text = limit.read_text().strip() if limit.exists() else ""
        if text.isdigit():
            total = min(total, int(text))
    return total


def limit_own_memory(most: int) -> None:
    """Let this process fail, rather than the machine, where it wants more bytes.

    What may be written to counts (Linux, RLIMIT_DATA), and not every address that DuckDB and Arrow set aside, as it
    would with ``spark.executor.pyspark.memory``. DuckDB's own limit applies to its buffers, and not to its vectors.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
