"""Ports for the servers of tests: below those that the system gives to clients, and each given once."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

FIRST, SHARE = 10_000, 4_000


def candidates() -> Iterator[int]:
    """Go through this worker's share of ports, not to meet another worker's."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + worker % 4 * SHARE
    return iter(range(first, first + SHARE))


left = candidates()


def free_ports(count: int = 1) -> int:
    """Return the first of so many neighbouring ports that nobody listens on, and that were not given before."""
    while True:
        first = next(left)
        for _ in range(count - 1):
            next(left)
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
