"""An interval of many keys: answered whole, and shown in a serving table."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from unittest.mock import patch

from benchmarks.scale.trials.answers import Hours
from benchmarks.scale.trials.tables import peak_mb
from seamline.lake.read.serving_table import refresh_serving_table
from seamline.lake.storage.kept import cached_table

AGAIN = 3


def measure_keys(sizes: Mapping[str, float]) -> dict[str, float]:
    """Refresh the serving table for one interval of so many ``keys``."""
    with tempfile.TemporaryDirectory() as folder, patch.object(cached_table, "BELIEVED", 0.0):
        tables = Hours(Path(folder), 2, int(sizes["keys"]))
        name, refreshed, asked, points = Hours.name(0), [], [], []
        bounds = {"start": Hours.name(0), "end": Hours.name(1)}
        tables.ask(**bounds)
        for _ in range(AGAIN):
            tables.publish_again(0)
            before = time.process_time()
            tables.ask(**bounds)
            asked.append(time.process_time() - before)
            tables.publish_again(0)
            before = time.process_time()
            tables.ask(where="sensor = 'sensor 7'", **bounds)
            points.append(time.process_time() - before)
            before = time.process_time()
            refresh_serving_table(tables.pipeline, tables.layout, tables.view, [name])
            refreshed.append(time.process_time() - before)
        root = tables.layout.generations(tables.view)
        held = sum(path.stat().st_size for path in root.rglob("*.parquet"))
        return {
            "serving_cpu_s": median(refreshed[1:]),
            "answer_cpu_s": median(asked),
            "point_cpu_s": median(points),
            "keys_mb": peak_mb(),
            "state_bytes": held / sizes["keys"] / 2,
        }
