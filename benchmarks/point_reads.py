"""Gets keys of Redis at random, each when it is due; a program of its own.

    python -m benchmarks.point_reads ADDRESS PATTERN

ADDRESS is JSON. Ends when its input ends, and prints how long each read took, in milliseconds. One that is late because
the one before took long counts from when it was due. Server and reader have real-time priority where that is allowed
(root): the figure is to be the server's, not the scheduler's.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

ROOT = Path(__file__).resolve().parents[1]
DATABASE = 1
EVERY = 0.004
"""Seconds between two reads."""
LISTED_EVERY = 1.0
PRIORITY = 50
"""Above what `chrt` gives a whole benchmark where other work is beside it."""


def open_client(address: dict[str, Any]) -> redis.Redis:
    """Open a client of a server."""
    return redis.Redis(address["host"], address["port"], DATABASE, password=address["password"])


def prefer(pid: int) -> bool:
    """Give a process real-time priority; false where that is not allowed."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except (PermissionError, AttributeError):
        return False
    return True


@contextmanager
def point_reads(address: dict[str, Any], pattern: str) -> Iterator[list[float]]:
    """Read keys meanwhile; the list has how long each read took, once it is over."""
    reader = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.point_reads", json.dumps(address), pattern],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    took: list[float] = []
    try:
        yield took
    finally:
        took.extend(json.loads(reader.communicate("")[0] or "[]"))


def read_on(client: redis.Redis, pattern: str, over: threading.Event) -> Iterator[float]:
    """Read keys that there are, and give how many milliseconds each took."""
    while not over.is_set():
        keys = list(client.scan_iter(pattern, count=1_000))[:10_000]
        if not keys:
            over.wait(0.1)
            continue
        due = time.perf_counter()
        until = due + LISTED_EVERY
        while due < until and not over.is_set():
            time.sleep(max(due - time.perf_counter(), 0))
            # What the sleep took too long is not the server's.
            due = max(due, time.perf_counter()) if due + EVERY > time.perf_counter() else due
            client.get(random.choice(keys))
            yield (time.perf_counter() - due) * 1000
            due += EVERY


def main(argv: list[str]) -> int:
    """Read until the input ends."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    prefer(0)
    with open_client(json.loads(argv[0])) as client:
        print(json.dumps([*read_on(client, argv[1], over)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
