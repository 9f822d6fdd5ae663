"""Many definitions: parsed, looked at, and the start of a task of one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.many_pipelines import measure


def measure_pipelines(sizes: Mapping[str, float]) -> dict[str, float]:
    """Parse and reconcile ``pipelines`` of them; the CPU seconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), int(sizes["pipelines"]), 1)
    return {f"{name.replace(' ', '_')}_cpu_s": cpu for name, (_, cpu) in found.items()}
