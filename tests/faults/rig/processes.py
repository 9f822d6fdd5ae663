"""The processes of a stack: found by the folder they work in, so that none is forgotten and no other is touched."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from seamline.runtime.failpoints import is_process_running

ORPHANS_END_WITHIN = 20.0


def working_in(home: Path) -> list[psutil.Process]:
    """List the live processes, but not this one, whose SEAMLINE_HOME is that folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("SEAMLINE_HOME") == str(home):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if is_process_running(process)]


def require_none(home: Path, *, within: float = ORPHANS_END_WITHIN) -> float:
    """Wait until no process of a stack is left, and give how many seconds that took."""
    began = time.monotonic()
    while left := working_in(home):
        took = time.monotonic() - began
        assert took < within, f"{took:.0f} s later these are left: {[said(each) for each in left]}"
        time.sleep(0.1)
    return time.monotonic() - began


def said(process: psutil.Process) -> str:
    """Name a process."""
    try:
        return f"{process.pid} {process.status()} {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return f"{process.pid} gone"


def end_all(home: Path) -> None:
    """Leave nothing of a stack behind, whatever state its test has left it in."""
    while left := working_in(home):
        signalled(left, signal.SIGKILL)
        psutil.wait_procs(left, 5)


def signalled(processes: Iterable[psutil.Process], sign: signal.Signals) -> int:
    """Send a signal to processes that are still there; give how many got it."""
    sent = 0
    for process in processes:
        try:
            process.send_signal(sign)
            sent += 1
        except psutil.NoSuchProcess:
            continue
    return sent
