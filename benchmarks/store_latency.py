"""What an epoch's commits and an answer take in a bucket, by the time that a request is on its way.

    python -m benchmarks.store_latency [--delays 0,11,27] [--views 2,20] [--epochs 60] [--server versitygw]

The shipped kernel and writer, without Spark and Kafka; the reader is a process of its own, with copies of its own. The
wire between them and the server delays each reply. Beside ms are the CPU time of the process that waits, how many
requests it sends in a row, and how many of each kind. What *follows* may have an age of a second. ``make services``
builds versitygw; moto's server needs nothing, and takes some ms for a request.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.machine import machine, percentile
from benchmarks.results import Results
from benchmarks.store_shop import KEYS, SERVERS, Reader, Shop, Spent, store, use_bucket
from benchmarks.store_wire import ROW, Wire, wire_before

WARM, AGAIN = 5, 4
AGE = 1.0
Took = list[tuple[Spent, Counter[str]]]


@dataclass(frozen=True)
class Measured:
    """What some doings took, in ms, and what one of them asked of the store on average."""

    what: str
    delay: float
    views: int
    p50: float
    p99: float
    cpu: float
    row: float
    requests: dict[str, float]

    @classmethod
    def of(cls, what: str, delay: float, views: int, took: Took) -> Measured:
        """Sum up."""
        asked: Counter[str] = sum((each for _, each in took), Counter())
        ms = [1000 * spent.wall for spent, _ in took]
        row = median(each[ROW] for _, each in took)
        average = {kind: round(asked[kind] / len(took), 2) for kind in sorted(asked) if kind != ROW}
        cpu = 1000 * median(spent.cpu for spent, _ in took)
        return cls(what, delay, views, percentile(ms, 0.5), percentile(ms, 0.99), cpu, row, average)

    def __str__(self) -> str:
        asked = ", ".join(f"{count:g} {kind}" for kind, count in self.requests.items())
        spent = f"{self.p50:8.1f}{self.p99:8.1f}{self.cpu:8.1f}{self.row:8g}"
        return f"{self.delay:>4g} ms{self.views:>4} views  {self.what:<24}{spent}   {asked}"


class Bench:
    """A shop behind the wire, its reader, and one that follows."""

    def __init__(self, wire: Wire, place: str, home: Path, views: int) -> None:
        self.wire = wire
        self.shop = Shop(place, home / "definitions", views)
        self.reader = Reader(place, home / "definitions", home / "reader")
        self.follower = Reader(place, home / "definitions", home / "follower", max_age=AGE)

    def commit(self) -> tuple[Spent, Counter[str]]:
        """Commit an epoch; its row in the ledger is waited for when readers may have it, and is counted."""
        spent = self.shop.commit(self.wire.take_counts)
        self.shop.writer.rows.whole()
        return spent, self.wire.take_counts()

    def ask(self) -> tuple[Spent, Counter[str]]:
        """Ask for all that is committed."""
        self.wire.take_counts()
        spent, counted = self.reader.ask()
        assert counted == self.shop.at // KEYS, (counted, self.shop.at)
        return spent, self.wire.take_counts()

    def ask_follower(self) -> tuple[bool, tuple[Spent, Counter[str]]]:
        """Ask for what was committed AGE seconds ago, or more; return whether that is all."""
        spent, counted = self.follower.ask()
        return counted == self.shop.at // KEYS, (spent, Counter())

    def close(self) -> None:
        """End the readers."""
        self.reader.close()
        self.follower.close()


def measure(bench: Bench, epochs: int) -> Iterator[tuple[str, Took]]:
    """Commit epochs, and ask after each once and a few times more; then the same of whoever follows."""
    cold = [bench.ask()]
    commits, after, idle = [], [], []
    for number in range(epochs + 1):
        taken, first, more = bench.commit(), bench.ask(), [bench.ask() for _ in range(AGAIN)]
        if number:
            commits.append(taken)
            after.append(first)
            idle += more
    yield "an epoch's commits", commits
    yield "answer, nothing new", idle
    yield "answer, after an epoch", after
    yield "answer, cold", cold
    bench.ask_follower()
    following: Took = []
    news: Took = []
    for _ in range(epochs):
        bench.commit()
        whole = False
        while not whole:
            whole, took = bench.ask_follower()
            (news if whole else following).append(took)
        following += [bench.ask_follower()[1] for _ in range(AGAIN)]
    yield "follows, nothing new", following
    yield "follows, after an epoch", news


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_latency", description=__doc__)
    parser.add_argument("--delays", default="0,11,27", help="ms")
    parser.add_argument("--views", default="2,20")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--server", choices=SERVERS, default="versitygw")
    asked = parser.parse_args(argv)
    print(machine(), flush=True)
    print(f"\n{'':<42}{'p50 ms':>8}{'p99':>8}{'CPU ms':>8}{'in row':>8}   requests", flush=True)
    found = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bucket = stack.enter_context(store(asked.server, folder))
        wire = stack.enter_context(wire_before(urlsplit(bucket.endpoint).port or 80))
        for delay in map(float, asked.delays.split(",")):
            for views in map(int, asked.views.split(",")):
                home = folder / f"{delay:g}-{views}"
                home.mkdir()
                use_bucket(bucket, wire.port, home)
                bench = Bench(wire, f"{bucket.url}/{home.name}", home, views)
                for _ in range(WARM):
                    bench.commit()
                wire.delay(delay / 1000)
                for what, took in measure(bench, asked.epochs):
                    each = Measured.of(what, delay, views, took)
                    print(each, flush=True)
                    found.append(asdict(each))
                wire.delay(0)
                bench.close()
    Results("store_latency").write({"measured": found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
