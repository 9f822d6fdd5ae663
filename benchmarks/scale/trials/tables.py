"""Hours of small epochs by the shipped kernel, writer and upkeep; and states that are merged by one process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks import ads, ageing
from benchmarks.ageing import Life
from benchmarks.measures import compiled
from seamline import count
from seamline import sum as summed
from seamline.lake.engine import states
from seamline.lake.storage.arrow_types import partial_schema
from seamline.lake.storage.parquet_files import read_parquet_footer

WARM, FOOTERS = 20, 200


class Lives(Life):
    """A life whose pipeline has so many views."""

    views = 1

    def __init__(self, home: Path, rate: int, views: int) -> None:
        made = ads.definition

        def with_views(topic: str, *, epoch: int) -> str:
            return made(topic, epoch=epoch, views=views)

        with patch.object(ageing.ads, "definition", with_views):
            super().__init__(home, rate)

    def count_live(self) -> tuple[int, int, int]:
        """Count the live files of the first view's slices and of the master, and the entries of both logs."""
        [slices, *_] = self.writer.slices.values()
        tables = [slices.table, self.writer.master.table]
        live = [each.refresh().actions().num_rows for each in tables]
        return live[0], live[1], sum(each.version + 1 for each in tables)


def measure_life(sizes: Mapping[str, float]) -> dict[str, float]:
    """Hold ``epochs`` epochs of ``events`` events each for so many ``views``, with upkeep every ``upkeep`` of them."""
    with tempfile.TemporaryDirectory() as folder:
        life = Lives(Path(folder), int(sizes["events"]) // 2, int(sizes["views"]))
        kernels, commits, kept = [], [], []
        for number in range(int(sizes["epochs"])):
            before = time.process_time()
            with patch.object(life.writer, "commit", timed_commit(life.writer.commit, commits)):
                life.epoch()
            kernels.append(time.process_time() - before - commits[-1])
            if (number + 1) % int(sizes["upkeep"]) == 0:
                before = time.process_time()
                life.upkeep()
                kept.append(time.process_time() - before)
        slices, master, entries = life.count_live()
        path = next(each for each in life.writer.master.table.root.glob("*.parquet"))
        before = time.process_time()
        for _ in range(FOOTERS):
            read_parquet_footer(path)
        footers = time.process_time() - before
        return {
            "commit_cpu_s": mean(commits[WARM:]),
            "kernel_cpu_s": median(kernels[WARM:]),
            "upkeep_cpu_s": median(kept),
            "footer_cpu_s": footers / FOOTERS,
            "slice_files": slices,
            "master_files": master,
            "entries": entries,
        }


def timed_commit(commit: object, taken: list[float]) -> object:
    """Note the CPU seconds of a commit."""

    def timed(*given: object) -> object:
        before = time.process_time()
        found = commit(*given)  # type: ignore[operator]
        taken.append(time.process_time() - before)
        return found

    return timed


def measure_merge(sizes: Mapping[str, float]) -> dict[str, float]:
    """Merge ``states`` states in four pieces, two of which are of each key; count and sum."""
    view = compiled({"n": count(), "total": summed("x")})
    total = int(sizes["states"])
    schema, quarter = partial_schema(view), total // 4

    def piece(first: int) -> pa.Table:
        keys = np.random.default_rng(first).permutation(quarter) + first % 2 * quarter
        known = {"k": pa.array(keys)}
        ones = pa.array(np.ones(quarter, np.int64))
        columns = [
            known.get(each.name, ones).cast(pa.float64() if pa.types.is_floating(each.type) else pa.int64())
            for each in schema
        ]
        return pa.table(columns, names=schema.names).cast(schema)

    pieces = [piece(number) for number in range(4)]
    peak_before, before = peak_mb(), time.process_time()
    merged = states.combine_states(view, pieces)
    spent = time.process_time() - before
    assert merged.num_rows == 2 * quarter, merged.num_rows
    return {"merge_cpu_s": spent, "merge_mb": peak_mb() - peak_before}


def peak_mb() -> float:
    """Return the most memory that this process has had, in MB."""
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
