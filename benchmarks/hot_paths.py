"""Count the modules on the way of an epoch, from Kafka to its commit, and of an answer, by a trace of calls.

    python -m benchmarks.hot_paths [--functions]

A broker and a stream of one view at 2,000 records a second; a reader asks all the time. Everything that is called below
the driver's micro-batch, below the kernel's task and below ``seamline.read`` counts, from the moment that the stream is
warm: starts, heartbeats and what goes on beside are left out. Modules stand in the order of their first call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import ads
from benchmarks.freshness import ROOT, new_topic
from benchmarks.machine import machine
from benchmarks.spine import broker
from seamline.kafka.connections import KafkaConnection
from seamline.local.stack import StreamStack

RATE, WARM, SECONDS = 2_000, 20, 10
ENTRIES = "spark/stream/driver_loop.py:on_batch,spark/tasks/task.py:task,serve/read.py:read"
"""The functions below which is traced: where Spark hands over a micro-batch, where it runs a task, and the reader's."""
PATHS = {"write side": ("on_batch", "task"), "read side": ("read",)}
READER = """
from seamline.serve.read import read
import sys, time
while True:
    read("ad_campaigns.views_by_campaign")
    time.sleep(0.2)
"""


def main(argv: list[str]) -> int:
    """Trace, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_paths", description=__doc__)
    parser.add_argument("--functions", action="store_true", help="the functions of each module, too")
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        calls = trace(connection, Path(folder))
    for title, entries in PATHS.items():
        modules: dict[str, Counter[str]] = {}
        for entry, module, function in calls:
            if entry in entries:
                modules.setdefault(module, Counter())[function] += 1
        print(f"\n{title}: {len(modules)} modules, {sum(map(len, modules.values()))} functions")
        for module, functions in modules.items():
            print(f"  {module}", f"({', '.join(functions)})" if options.functions else "")
    return 0


def trace(connection: KafkaConnection, home: Path) -> list[tuple[str, str, str]]:
    """Run a stream and a reader; (entry, module, function) of each call once they are warm."""
    traces = home / "traces"
    traces.mkdir()
    traced = {
        "SEAMLINE_TRACE": str(traces),
        "SEAMLINE_TRACED": ENTRIES,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "benchmarks" / "tracer"), os.environ.get("PYTHONPATH", ""), str(ROOT / "include")]
        ),
    }
    with new_topic(connection, "traced") as topic:
        text = ads.definition(topic, epoch=1_000_000, trigger="0 seconds", views=1)
        stack = StreamStack(home / "stack", text, connection, "ad_campaigns", env=traced)
        stack.start()
        stack.wait("the query", (stack.home / "streams" / "ad_campaigns" / "driver.json").exists)
        command = [sys.executable, "-m", "benchmarks.steady", connection.brokers, topic]
        with (
            subprocess.Popen([*command, str(RATE), str(WARM + SECONDS)], cwd=ROOT, stdout=subprocess.DEVNULL),
            subprocess.Popen([sys.executable, "-c", READER], env=stack.settings) as reader,
        ):
            time.sleep(WARM)
            began = time.time()
            time.sleep(SECONDS)
            ended = time.time()
            reader.terminate()
        stack.stop()
    lines = [line.split("\t") for path in sorted(traces.iterdir()) for line in path.read_text().splitlines()]
    return list(
        dict.fromkeys(
            (entry, module, function)
            for second, entry, module, function in lines
            if began < int(second) < ended
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
