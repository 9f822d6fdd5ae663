"""How a JVM talks to its Python workers on the same machine: by Unix sockets, in a folder that is the user's alone.

Spark writes a task's input in pieces. Over TCP the last one is held back until the one before is acknowledged, which
the receiver puts off for 40 ms in the hope of an answer to send along (RFC 896, RFC 1122 section 4.2.3.2).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from seamline.runtime.private_folder import private_folder

PREFIX = "spark-"
LONGEST = 107 - len("/.00000000-0000-0000-0000-000000000000.sock")
"""Bytes of the folder's name, with which the system still takes the name of a socket that Spark makes there."""

held: list[int] = []
"""Folders of this process, open and locked until it ends: nobody takes them for left behind."""


def unix_socket_settings() -> dict[str, str]:
    """Return Spark's settings for it; none if no folder will do, and TCP is used."""
    with suppress(OSError):
        folder = own_folder(private_folder())
        if len(os.fsencode(folder)) <= LONGEST:
            return {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": str(folder),
            }
    return {}


def own_folder(place: Path) -> Path:
    """Make a folder for this process's sockets, and delete those of processes that have ended."""
    for other in place.glob(f"{PREFIX}*"):
        if (locked := lock_folder(other)) is not None:
            shutil.rmtree(other, ignore_errors=True)
            os.close(locked)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        locked = lock_folder(folder)
        # Someone may have come between, and taken it for left behind.
        if locked is not None and folder.exists():
            held.append(locked)
            return folder
        if locked is not None:
            os.close(locked)


def lock_folder(folder: Path) -> int | None:
    """Lock a folder, and return the lock; None if another process has it, or it is gone."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        return None
    return opened
