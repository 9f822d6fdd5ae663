"""The shipped example live_campaigns: how old an event is when Redis counts it, and what a point read takes meanwhile.

    python -m benchmarks.live_campaigns [--rates 1000,5000] [--seconds 45]

The generator, the stream, its sinks, Valkey, a poller that adds up all counts in it, and a reader of single keys
(`benchmarks.point_reads`) are processes of their own on the same cores. An event counts as seen at the first look that
counts as many views as had been sent when it was created. The first seconds warm up and are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.services.run import Run as Servers

from benchmarks.freshness import WARM, Run, measured, new_topic, numbers
from benchmarks.machine import machine, percentile
from benchmarks.point_reads import DATABASE, open_client, point_reads, prefer
from benchmarks.results import Results
from benchmarks.spine import broker
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack
from seamline.runtime.processes import own_process_name

ROOT = Path(__file__).resolve().parents[1]
NAME, HEAD = "live_campaigns", "ads:{live_campaigns.by_campaign_redis}"


@contextmanager
def sinks(stack: StreamStack) -> Iterator[subprocess.Popen[bytes]]:
    """Run the sinks as the stream's supervisor does."""
    with (stack.home / "sinks.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seamline.sinks", NAME, own_process_name()],
            env=stack.settings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def measure(
    connection: KafkaConnection, home: Path, address: dict[str, Any], rate: int, seconds: float
) -> tuple[Run, list[float]]:
    """Measure one rate."""
    with new_topic(connection, home.name) as topic, open_client(address) as client:
        client.flushdb()
        text = (ROOT / "include" / "examples" / f"{NAME}.py").read_text()
        text = text.replace("examples.live_ad_events", topic)
        server = {"conn_type": "redis", "extra": {"db": DATABASE}, **address}
        env = {"AIRFLOW_CONN_REDIS_DEFAULT": json.dumps(server)}
        stack = StreamStack(home, text, connection, NAME, env)
        stack.start()
        assert stack.driver
        stack.wait("the query", (home / "streams" / NAME / "driver.json").exists)

        def look() -> int:
            keys = list(client.scan_iter(f"{HEAD}:*", count=10_000))
            return sum(json.loads(each)["views"] for each in client.mget(keys) if each) if keys else 0

        try:
            with sinks(stack), point_reads(address, f"{HEAD}:*") as took:
                run = measured(
                    "redis", rate, "500 ms, served each second", 1, connection, topic, stack.driver.pid, look,
                    seconds=WARM + seconds,
                )  # fmt: skip
        finally:
            stack.stop()
        return run, took


def main(argv: list[str]) -> int:
    """Measure each rate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_campaigns", description=__doc__)
    parser.add_argument("--rates", type=numbers, default="1000,5000")
    parser.add_argument("--seconds", type=float, default=45)
    options = parser.parse_args(argv)
    print(machine())
    found = []
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        servers = Servers(Path(folder) / "servers", os.getpid())
        try:
            address = dict(servers.find("valkey"))
            [pid] = [each.server[0] for each in servers.started() if each.server]
            alone = prefer(pid)
            for rate in options.rates:
                run, took = measure(connection, Path(folder) / f"live_{rate}", address, rate, options.seconds)
                reads = {f"get_p{int(share * 100)}_ms": percentile(took, share) for share in (0.5, 0.99)}
                found.append({**asdict(run), **reads, "reads": len(took), "load": os.getloadavg()[0]})
                print(json.dumps(found[-1]), flush=True)
        finally:
            servers.end()
    Results("live_campaigns").write({"machine": machine(), "real_time": alone, "runs": found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
