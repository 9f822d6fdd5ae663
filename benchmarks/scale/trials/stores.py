"""Epochs and answers in a bucket behind a wire: requests by kind, and the time that they wait."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.store_latency import Bench
from benchmarks.store_shop import store, use_bucket
from benchmarks.store_wire import ROW, wire_before
from seamline.lake.storage.bucket_checkpoints import WRITING

WARM = 3


def measure_requests(sizes: Mapping[str, float]) -> dict[str, float]:
    """Commit ``epochs`` epochs of so many ``views``, each reply ``rtt`` ms late; answer after the last ones."""
    epochs = int(sizes["epochs"])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bucket = stack.enter_context(store("versitygw", folder))
        wire = stack.enter_context(wire_before(urlsplit(bucket.endpoint).port or 80))
        use_bucket(bucket, wire.port, folder)
        bench = Bench(wire, f"{bucket.url}/scale", folder, int(sizes["views"]))
        for _ in range(WARM):
            bench.commit()
        bench.ask()
        wire.delay(sizes["rtt"] / 1000)
        walls, cpus, row, counts = [], [], [], Counter[str]()
        wire.take_counts()

        def count_written() -> None:
            counts.update(wire.take_counts())

        for _ in range(epochs):
            spent = bench.shop.commit(count_written)
            bench.shop.writer.rows.whole()
            WRITING.finish()
            taken = wire.take_counts()
            row.append(taken[ROW])
            counts += taken
            walls.append(spent.wall)
            cpus.append(spent.cpu)
        figures = {kind.lower(): counts[kind] / epochs for kind in ("PUT", "GET", "LIST", "HEAD")}
        news = []
        idle = []
        for _ in range(5):
            news.append(bench.ask())
            idle.append(bench.ask())
            bench.commit()
        wire.delay(0)
        bench.close()
        return figures | {
            "commit_wall_s": median(walls),
            "commit_cpu_s": median(cpus),
            "commit_row": median(row),
            "idle_gets": median(taken["GET"] for _, taken in idle),
            "idle_wall_s": median(spent.wall for spent, _ in idle),
            "news_wall_s": median(spent.wall for spent, _ in news[1:]),
            "news_gets": median(taken["GET"] for _, taken in news[1:]),
        }
