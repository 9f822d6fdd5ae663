"""What the task of a small epoch costs, its queries planned once or each time: python -m benchmarks.small_epochs

The kernel's task without Spark and Kafka, which validates, writes and counts events of the example ad_campaigns: with
one view and with twenty, and with a thousand rules of which each has a condition of its own. Both ways take turns in
one process. Prints milliseconds of CPU, medians.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pyarrow as pa

from benchmarks import ads, rules
from benchmarks.kernels import records, task
from benchmarks.machine import machine
from benchmarks.results import Results
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.lake.engine import prepared_queries
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.model.compile.catalog import load_pipeline

SORTS = ("one view", "twenty views", "a thousand conditions")
WAYS = {"planned once": prepared_queries.FEW, "planned each time": -1}
"""How many rows are few, by what is measured."""
WARM = 5


def main(argv: list[str]) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_epochs", description=__doc__)
    parser.add_argument("--records", type=int, default=1000, help="of an epoch [default: 1000]")
    parser.add_argument("--rounds", type=int, default=40, help="in which both take turns [default: 40]")
    asked = parser.parse_args(argv)
    if asked.records < 1 or asked.rounds < 1:
        parser.error("--records and --rounds are at least 1")
    print(machine(), flush=True)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="epochs") as folder:
        for sort in SORTS:
            config = configure(sort, Path(folder) / sort.replace(" ", "-"))
            batches = make_events(config, asked.records).to_batches()
            spent: dict[str, list[float]] = {way: [] for way in WAYS}
            for number in range(WARM + asked.rounds):
                for way, few in WAYS.items():
                    prepared_queries.FEW = few
                    began = time.process_time()
                    run(batches, replace(config, epoch=number))
                    if number >= WARM:
                        spent[way].append(time.process_time() - began)
            found[sort] = {way: median(each) * 1000 for way, each in spent.items()}
            print(f"epochs {sort:21}: {', '.join(f'{way} {ms:.1f} ms' for way, ms in found[sort].items())}")
    Results("small_epochs").write({"machine": machine(), "records": asked.records, "cpu_ms": found})
    return 0


def configure(sort: str, home: Path) -> KernelConfig:
    """Return the kernel's task of a pipeline whose tables are below a folder."""
    home.mkdir()
    text = ads.definition("ads", epoch=1_000_000, views=20 if sort == "twenty views" else 1)
    if sort == "a thousand conditions":
        table = home / "rules.csv"
        text = rules.define("own conditions", "ads", table)
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(rules.make_rules("own conditions", 1000))
    (home / "ad_campaigns.py").write_text(text)
    pipeline = load_pipeline(home, "ad_campaigns")
    lookups = Lookups(pipeline.lookups, Layout(home / "tables", "ad_campaigns"), {})
    return task(pipeline, 1, home, lookups=lookups.version_paths(lookups.current_versions()))


def make_events(config: KernelConfig, count: int) -> pa.Table:
    """Make raw records of events, a millisecond apart."""
    drawn, moments = ads.pool(), ads.clock(ads.BEGIN)
    return records([*each_event(drawn, moments, count)], config.pipeline.definition.topics[0], 0)


def each_event(drawn: ads.Pool, moments: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield so many events."""
    for number in range(count):
        yield drawn.texts[number % len(drawn.texts)] + ads.TAIL % next(moments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
