"""How old an event is when a reader first sees it counted, with the warehouse in a bucket, by the delay of its replies.

    python -m benchmarks.store_freshness [--delays 0,11,27] [--rate 5000] [--trigger "0 seconds"] [--server versitygw]

As ``benchmarks.freshness``: the generator, the stream and the reader are processes on the same cores, and the bucket's
server with the wire before it are two more. The reader asks the bucket for each answer, and keeps copies of its own.
``make services`` builds versitygw; moto's server needs nothing, and takes some ms for a request.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.compute as pc

from benchmarks import ads
from benchmarks.freshness import Run, measured, new_topic
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.spine import broker
from benchmarks.store_shop import SERVERS, store, use_bucket
from benchmarks.store_wire import Wire, wire_before
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.serve.read import read

NAME = "ad_campaigns"


def measure(
    connection: KafkaConnection, home: Path, place: str, wire: Wire, delay: float, rate: int, trigger: str
) -> Run:
    """Measure `seamline.read` of a live stream, once every reply takes ``delay`` ms."""
    with new_topic(connection, home.name) as topic:
        text = ads.definition(topic, epoch=1_000_000, trigger=trigger, views=1)
        stack = StreamStack(home, text, connection, NAME, {"SEAMLINE_WAREHOUSE": place})
        stack.start()
        assert stack.driver
        os.environ |= {**stack.settings, "SEAMLINE_HOME": str(home / "reader")}
        stack.wait("the query", (home / "streams" / NAME / "driver.json").exists)
        wire.delay(delay / 1000)

        def look() -> int:
            return pc.sum(read(f"{NAME}.views_by_campaign")["views"]).as_py() or 0

        try:
            return measured(f"{delay:g} ms", rate, trigger, 1, connection, topic, stack.driver.pid, look)
        finally:
            wire.delay(0)
            stack.stop()


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_freshness", description=__doc__)
    parser.add_argument("--delays", default="0,11,27", help="ms")
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--trigger", default="0 seconds")
    parser.add_argument("--server", choices=SERVERS, default="versitygw")
    asked = parser.parse_args(argv)
    print(machine(), flush=True)
    runs = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        connection = stack.enter_context(broker(folder / "broker"))
        bucket = stack.enter_context(store(asked.server, folder))
        wire = stack.enter_context(wire_before(urlsplit(bucket.endpoint).port or 80))
        for delay in map(float, asked.delays.split(",")):
            home = folder / f"run{delay:g}"
            home.mkdir()
            use_bucket(bucket, wire.port, home)
            place = f"{bucket.url}/{home.name}"
            run = measure(connection, home, place, wire, delay, asked.rate, asked.trigger)
            runs.append(run)
            print(
                f"a reply takes {run.system:>5} more, {run.rate:,}/s: p50 {run.p50:.2f} s, p90 {run.p90:.2f} s, "
                f"p99 {run.p99:.2f} s, {run.cores:.2f} cores, {run.answers} answers",
                flush=True,
            )
    Results("store_freshness").write({"machine": machine(), "runs": [asdict(run) for run in runs]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
