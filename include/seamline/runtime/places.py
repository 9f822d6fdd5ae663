"""Where a process is: one boot of one machine, and one container of it, where its id means what it means.

A host name is none of that: containers and machines may share one, and go on under it after a restart.
"""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from pathlib import Path

import psutil

PROC = Path("/proc")
POD = "SEAMLINE_POD_ID"
"""A variable that tells places further apart, as by the uid of a Kubernetes pod; it never makes two of them one."""
UNSEEN = "unseen-"
"""What the word of a place begins with whose processes cannot be told from others."""
FIRST_TIME_NAMESPACE = "time:[4026531834]"
"""Of a machine's first time namespace: in another one processes are told to have started at other times."""


def host_name() -> str:
    """Return this machine's or container's name, for people and for the first word of a place."""
    return socket.gethostname()


def own_place() -> str:
    """Name this place in two words: the host, and what tells it from others of that name."""
    return f"{host_name()} {distinguish_place()}"


def can_see_processes() -> bool:
    """Return whether the processes of this place can be told from others: if not, nobody is taken for gone."""
    return not distinguish_place().startswith(UNSEEN)


@cache
def distinguish_place() -> str:
    """Tell this place from others of the same host name, in one word: by boot, namespaces and pod."""
    parts = read_namespaces() or read_first_process() or [f"{UNSEEN}{uuid.uuid4().hex}"]
    pod = "".join(os.environ.get(POD, "").split())
    return ":".join([*parts, pod] if pod else parts)


def is_of_this_place(pid: int) -> bool:
    """Return whether a process that we see is of our own container: those of containers within it are seen, too."""
    try:
        return (PROC / f"{pid}/ns/pid").readlink() == (PROC / "self/ns/pid").readlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def read_namespaces() -> list[str]:
    """Read the boot of this kernel and the namespaces of this process; nothing where Linux does not say them."""
    try:
        if (PROC / "self").readlink().name != str(os.getpid()):
            # What is mounted there is of another namespace, with other processes of our ids.
            return [f"{UNSEEN}{uuid.uuid4().hex}"]
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        ids = str((PROC / "self/ns/pid").readlink())
    except OSError:
        return []
    return [boot, ids, *read_time_namespace()]


def read_time_namespace() -> list[str]:
    """Read the time namespace, unless it is the machine's first."""
    try:
        found = str((PROC / "self/ns/time").readlink())
    except OSError:
        return []
    return [] if found == FIRST_TIME_NAMESPACE else [found]


def read_first_process() -> list[str]:
    """Read when the first process began, which is another with each boot; nothing if that is not shown."""
    try:
        return [f"{uuid.getnode():x}", str(psutil.Process(1).create_time())]
    except psutil.Error:
        return []
