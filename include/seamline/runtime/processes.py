"""Processes as others know them, and a clock that nobody sets and that goes on while a machine sleeps."""

from __future__ import annotations

import os
import time
from enum import StrEnum

import psutil

from seamline.runtime.places import PROC, can_see_processes, own_place

STOPPED = frozenset({"T", "t", psutil.STATUS_STOPPED})
ENDED = frozenset({"Z", "X", psutil.STATUS_ZOMBIE})


def boot_clock_seconds() -> float:
    """Return seconds since some moment: CLOCK_BOOTTIME, or the monotonic clock where there is none."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Life(StrEnum):
    """What is known of a process: GONE and ALIVE are proven, UNKNOWN is of another place, hidden, or stopped."""

    GONE = "gone"
    ALIVE = "alive"
    UNKNOWN = "unknown"


def process_start_mark(pid: int) -> str:
    """Distinguish one process from another that later got its id; psutil.Error where there is none, or it is hidden.

    Not by the time of day, as which Linux returns it too: that changes with every clock that is set.
    """
    if (found := stat_of(pid)) is None:
        return str(psutil.Process(pid).create_time())
    return found[19]


def stat_of(pid: int) -> list[str] | None:
    """Read what Linux says of a process, from its state on (proc(5)); None where there is no Linux."""
    if not (PROC / "self/stat").exists():
        return None
    try:
        text = (PROC / f"{pid}/stat").read_text()
    except PermissionError as error:
        raise psutil.AccessDenied(pid) from error
    except (FileNotFoundError, ProcessLookupError) as error:
        # Mounted with hidepid, /proc has none but our user's.
        raise (psutil.AccessDenied if has_process(pid) else psutil.NoSuchProcess)(pid) from error
    # The name before may contain blanks and brackets.
    return text.rpartition(")")[2].split()


def has_process(pid: int) -> bool:
    """Return whether a process of an id is there, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def name_process(pid: int) -> str:
    """Name a process of this place; psutil.NoSuchProcess where there is none."""
    return f"{own_place()} {pid} {process_start_mark(pid) if can_see_processes() else 0}"


def own_process_name() -> str:
    """Name this process, not to be mistaken for another of the same id, here or elsewhere."""
    return name_process(os.getpid())


def is_local_process(process: str) -> bool:
    """Return whether a process of that name is of this place, where it can be seen."""
    words = process.split(" ")
    return can_see_processes() and len(words) == 4 and " ".join(words[:2]) == own_place()


def life_of(process: str) -> Life:
    """Return whether a process of that name lives, as far as it can be seen from here and now."""
    return state_of(process) if is_local_process(process) else Life.UNKNOWN


def state_of(process: str) -> Life:
    """Return whether a process of this place has ended, is stopped, or runs."""
    _, _, pid, born = process.split(" ")
    try:
        if process_start_mark(int(pid)) != born:
            return Life.GONE
        found = stat_of(int(pid))
        state = found[0] if found else psutil.Process(int(pid)).status()
    except psutil.NoSuchProcess:
        return Life.GONE
    except psutil.AccessDenied:
        return Life.UNKNOWN
    if state in ENDED:
        return Life.GONE
    return Life.UNKNOWN if state in STOPPED else Life.ALIVE
