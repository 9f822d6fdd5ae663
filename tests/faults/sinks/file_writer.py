"""A process that writes files, version after version, merges them, and may be killed: ``python -m`` this, with JSON.

It makes up the same versions as whoever has the seed, and goes on from the position in the newest manifest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from tests.e2e.sinks.served_rows import ServedRows, make_view

from seamline import FileSink
from seamline.sinks.files.target import FileTarget
from seamline.sinks.target import ChangeBatch

LAST, ROWS = 24, 60
START = 1_796_000_000.0


def list_versions(seed: int) -> Iterator[tuple[ServedRows, list[ChangeBatch]]]:
    """Make up versions, each with its changes."""
    served = ServedRows(make_view(), seed, ROWS)
    changes = served.whole(25)
    for version in range(LAST + 1):
        served.version = version
        yield served, changes
        changes = [served.change(8, 4, 4)]


def write_versions(told: dict[str, Any]) -> None:
    """Write all versions that are not there, with upkeep after each: a minute passes in between."""
    now = [START]
    sink = FileSink("by_till", path=told["path"], format=told["format"], history=told["history"])
    with closing(FileTarget(sink, make_view(), lambda: now[0])) as target:
        held = target.take_over()
        print(-1 if held is None else held.version, flush=True)
        for served, changes in list_versions(told["seed"]):
            now[0] = START + 60 * served.version
            if held is None or served.version > held.version:
                target.write(changes, served.position)
                target.tidy(lambda: False)
                print(served.version, flush=True)


if __name__ == "__main__":
    write_versions(json.loads(sys.stdin.read()))
