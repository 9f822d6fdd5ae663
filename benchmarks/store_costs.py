"""What a stream in a bucket asks of its store, and what that costs in a month, from counted requests.

    python -m benchmarks.store_costs [--views 1,2,5,20] [--triggers 1,5,30,300] [--put 0.005] [--get 0.0004]

Prices are dollars for a thousand requests: those that write or list, and those that read. An epoch is counted by the
shipped kernel and writer with one file for the master and nothing refused, over as many epochs as there are between two
checkpoints of each table. Upkeep, builds, storage and traffic are not counted. The table is for docs/stores.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.results import Results
from benchmarks.store_shop import SERVERS, Shop, store, use_bucket
from benchmarks.store_wire import ROW, Wire, wire_before
from seamline.lake.read.serving_table import refresh_serving_table
from seamline.lake.storage.bucket_checkpoints import WRITING
from seamline.lake.tables.control_poll import EVERY
from seamline.model.time.intervals import parse_duration
from seamline.supervisor.observe import observe
from seamline.supervisor.restart_pace import Pace

MONTH = 30.4 * 86_400
"""Seconds."""
EPOCHS, TIMES = 100, 10
DEAR = ("PUT", "LIST", "POST")
FREE = ("DELETE",)


@dataclass(frozen=True)
class Prices:
    """Dollars for a thousand requests."""

    writing: float
    reading: float

    def of(self, requests: Mapping[str, float]) -> float:
        """Price requests by kind; to delete costs nothing."""
        writing = sum(requests.get(kind, 0.0) for kind in DEAR)
        reading = sum(count for kind, count in requests.items() if kind not in (*DEAR, *FREE))
        return (writing * self.writing + reading * self.reading) / 1000

    def of_month(self, requests: Mapping[str, float], every: float) -> float:
        """Price what is asked every so many seconds, for a month."""
        return self.of(requests) * MONTH / every


def count_average(wire: Wire, act: Callable[[], object], times: int) -> dict[str, float]:
    """Count what doing something asks for, on average."""
    wire.take_counts()
    for _ in range(times):
        act()
    found: Counter[str] = wire.take_counts()
    return {kind: count / times for kind, count in sorted(found.items()) if kind != ROW and count}


def count_epoch(shop: Shop, wire: Wire) -> dict[str, float]:
    """Count an epoch, with its share of the checkpoints."""

    def commit_all() -> None:
        for _ in range(EPOCHS):
            shop.commit()
        WRITING.finish()

    found = count_average(wire, commit_all, 1)
    return {kind: count / EPOCHS for kind, count in found.items()}


def count_beside(shop: Shop, wire: Wire) -> dict[str, tuple[float, dict[str, float]]]:
    """Count what goes on beside the epochs: by name, every how many seconds, and what it asks for each time."""
    lease = shop.control.take("host:1:1", now=datetime.now(UTC))

    def renew() -> None:
        nonlocal lease
        lease = shop.control.renew(lease, now=datetime.now(UTC))

    def watch() -> None:
        shop.commit()
        wire.take_counts()
        observe("shop", shop.layout, shop.pipeline, broker=False)

    def refresh() -> None:
        shop.commit()
        wire.take_counts()
        refresh_serving_table(shop.pipeline, shop.layout, shop.pipeline.views[0])

    watch()
    refresh()
    pace, stream = Pace(), shop.pipeline.definition.stream
    return {
        "the lease": (pace.renew, count_average(wire, renew, TIMES)),
        "the driver's look at what it should do": (EVERY, count_average(wire, shop.control.read, TIMES)),
        "the watch for alerts": (pace.look, count_average(wire, watch, 1)),
        "a view's serving table": (
            parse_duration(stream.serve_every).total_seconds(),
            count_average(wire, refresh, 1),
        ),
    }


def write_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of Markdown."""
    return "\n".join(f"| {' | '.join(each)} |" for each in (heads, ["---"] * len(heads), *rows))


def name_requests(requests: Mapping[str, float]) -> str:
    """Name requests by kind."""
    return ", ".join(f"{round(count, 1):g} {kind}" for kind, count in requests.items()) or "none"


def main(argv: list[str]) -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_costs", description=__doc__)
    parser.add_argument("--views", default="1,2,5,20")
    parser.add_argument("--triggers", default="1,5,30,300", help="seconds")
    parser.add_argument("--put", type=float, default=0.005, help="dollars for 1,000 PUT, COPY, POST or LIST")
    parser.add_argument("--get", type=float, default=0.0004, help="dollars for 1,000 of all others")
    parser.add_argument("--server", choices=SERVERS, default="versitygw")
    asked = parser.parse_args(argv)
    prices, triggers = Prices(asked.put, asked.get), [float(each) for each in asked.triggers.split(",")]
    rows: list[list[str]] = []
    beside: dict[str, tuple[float, dict[str, float]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bucket = stack.enter_context(store(asked.server, folder))
        wire = stack.enter_context(wire_before(urlsplit(bucket.endpoint).port or 80))
        for views in map(int, asked.views.split(",")):
            home = folder / str(views)
            home.mkdir()
            use_bucket(bucket, wire.port, home)
            shop = Shop(f"{bucket.url}/{views}", home / "definitions", views)
            found = count_epoch(shop, wire)
            dollars = [f"{prices.of_month(found, trigger):,.0f}" for trigger in triggers]
            rows.append([str(views), name_requests(found), *dollars])
            beside = beside or count_beside(shop, wire)
    print(f"Dollars a month at {asked.put} for 1,000 PUT or LIST, and {asked.get} for 1,000 of the others:\n")
    heads = ["views", "requests of an epoch", *(f"every {each:g} s" for each in triggers)]
    print(write_table(heads, rows) + "\n")
    told = [
        [name, f"{every:g} s", name_requests(found), f"{prices.of_month(found, every):.2f}"]
        for name, (every, found) in beside.items()
    ]
    print(write_table(["beside the epochs", "every", "requests", "dollars a month"], told))
    Results("store_costs").write({"epochs": rows, "beside": told})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
