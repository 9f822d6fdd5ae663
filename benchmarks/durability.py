"""What it costs to have commits on disk: an epoch and a publication, by setting.

    python -m benchmarks.durability [--epochs 60] [--publications 10]

The shipped commits of an epoch, without Kafka and Spark, a data file of 20 kB in each; slices and ledger are never
synced. A publication is a generation, its build's row, its certificate and the manifest's
statement. ``off`` syncs nothing, as tables of tests do.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.machine import machine, percentile
from seamline.lake.storage import data_files, durability
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.model.definition.layers import DURABILITY

SCHEMA = pa.schema([("n", pa.int64()), ("raw", pa.binary())])
PUBLISHED = ("generations", "builds", "certificates", "manifest")


def main() -> None:
    """Print milliseconds, wall and CPU, of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--publications", type=int, default=10)
    given = parser.parse_args()
    print(machine())
    for setting in ("off", *DURABILITY):
        os.environ["SEAMLINE_FSYNC"] = "off" if setting == "off" else ""
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as home:
            tables = log_of(Path(home), DURABILITY[0] if setting == "off" else setting)
            told("epoch", setting, [timed(epoch, tables, at) for at in range(given.epochs)])
            told("publish", setting, [timed(publish, Path(home), at) for at in range(given.publications)])


def log_of(home: Path, level: str) -> list[Table]:
    """Make the tables of an epoch, in the order of its commits."""
    tables = [Table.ensure(home / name, SCHEMA) for name in ("slices", "quarantine", "master", "ledger")]
    for table in tables:
        table.fence(1)
    for table in tables[1:3]:
        table.state_durability(level)
    return tables


def epoch(tables: list[Table], number: int) -> None:
    """Write and commit what an epoch does."""
    for table in tables:
        table.append([written(table.root, f"{number}.parquet")], txns={EPOCH: number})


def publish(home: Path, number: int) -> None:
    """Write and commit what a build and its publication do."""
    durability.sync_disk(home)
    for name in PUBLISHED:
        table = Table.ensure(home / name, SCHEMA)
        table.append([written(table.root, f"{number}/{number}.parquet")], txns={name: number})


def written(root: Path, name: str) -> data_files.DataFile:
    """Write 20 kB."""
    return data_files.write_data_file(
        pa.table({"n": [1], "raw": [os.urandom(20_000)]}, schema=SCHEMA), root, name
    )


def timed(do: Callable[..., None], *given: object) -> tuple[float, float]:
    """Return milliseconds, wall and CPU."""
    wall, own = time.perf_counter(), time.process_time()
    do(*given)
    return (time.perf_counter() - wall) * 1000, (time.process_time() - own) * 1000


def told(what: str, setting: str, found: list[tuple[float, float]]) -> None:
    """Print one line."""
    wall, own = (sorted(each) for each in zip(*found, strict=True))
    figures = ", ".join(f"p{share} {percentile(wall, share / 100):.1f}" for share in (50, 90, 99))
    print(f"{what:8} {setting:7} {figures} ms; CPU {percentile(own, 0.5):.1f} ms")


if __name__ == "__main__":
    main()
