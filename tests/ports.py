"""Ports for the servers of tests: below those that the system gives to clients, and each given once.

A port that was given stays with the process that asked until it ends, also while nobody listens on it yet: byte N of
one file of this machine is locked for port N, and the system lets go of it when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

FIRST, SHARE = 10_000, 4_000


def candidates() -> Iterator[int]:
    """Go through this worker's share of ports, not to meet another worker's."""
    worker = int((os.environ.get("PYTEST_XDIST_WORKER") or "gw0").removeprefix("gw"))
    first = FIRST + worker % 4 * SHARE
    return iter(range(first, first + SHARE))


left = candidates()


def free_ports(count: int = 1) -> int:
    """Return the first of so many neighbouring ports that nobody listens on, and that were given to nobody else."""
    while True:
        first = next(left)
        for _ in range(count - 1):
            next(left)
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + count):
                fcntl.lockf(given(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


@cache
def given() -> BinaryIO:
    """Open the file whose locks say which port was given, one file for all runs of a user on this machine."""
    return (Path(tempfile.gettempdir()) / f"seamline-ports-{os.getuid()}.lock").open("ab")
