"""A process that writes to a target, version after version, and that may be killed: ``python -m`` this, with JSON.

It makes up the same versions as whoever has the seed, and goes on from the position in the target.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator

from tests.e2e.sinks.served_rows import ServedRows, make_view

from seamline import PostgresSink, RedisSink
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.redis.target import RedisTarget
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch, Target

ROWS, LAST = 200, 40


def open_named(kind: str, connection: ServerConnection) -> Target:
    """Open a target by the kind of its server."""
    view = make_view()
    if kind == "postgres":
        return PostgresTarget(PostgresSink("by_till", table="by_till", schema="shop"), view, connection)
    return RedisTarget(RedisSink("by_till", prefix="live:"), view, connection)


def write_versions(target: Target, seed: int, die_at: int) -> None:
    """Write all versions that the target has not; at one of them, die once all of its rows are on their way."""
    held = target.take_over()
    at = -1 if held is None else held.version
    print(at, flush=True)
    served = ServedRows(make_view(), seed, ROWS)
    changes = served.whole(50)
    for version in range(LAST + 1):
        if version > at:
            target.write(dying(changes) if version == die_at else changes, served.position)
            print(version, flush=True)
        changes = [served.change(20, 5, 5), served.change(5, 5, 5)]
        served.version = version + 1


def dying(changes: Iterable[ChangeBatch]) -> Iterator[ChangeBatch]:
    """Give changes, and kill this process in place of an end."""
    yield from changes
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    told = json.loads(sys.stdin.read())
    write_versions(
        open_named(told["kind"], ServerConnection(**told["connection"])), told["seed"], told["die_at"]
    )
