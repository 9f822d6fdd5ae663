"""Saves the tails of a fold while it goes on: a child of its process, which has them as they were, writes a file."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from seamline.lake.joins.snapshots import write_snapshots
from seamline.lake.store.drafted_files import forget_draft
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import describe_error
from seamline.model.functions.tails import Tails

NICE = 10
"""How far behind others the child stands where they want the processor."""
LONGEST = 900
"""Seconds after which a child is ended."""
SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux."""


class TailSaving:
    """The child that writes, one at a time; ``fds`` are what it has of its parent and must let go of."""

    def __init__(self, fds: Iterable[int]) -> None:
        self.fds = [*fds]
        self.child, self.told = 0, -1
        self.path = Path()
        self.said = ""
        """What the last child has said."""

    def begin(self, path: Path, process: CompiledProcess, tails: Tails) -> None:
        """Have a child write the snapshots of all keys; ``look`` says why, if none could be started."""
        self.path, self.said, parent = path, "", os.getpid()
        try:
            told, tell = os.pipe()
        except OSError as error:
            self.said = describe_error(error)
            return
        try:
            with warnings.catch_warnings():
                # Arrow has threads, which wait for work; nothing else has any here.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
        except OSError as error:
            os.close(told)
            self.said = describe_error(error)
        else:
            if not child:
                self.write(path, process, tails, tell, parent)
            self.child, self.told = child, told
        finally:
            os.close(tell)

    def write(self, path: Path, process: CompiledProcess, tails: Tails, tell: int, parent: int) -> None:
        """Write, and end this process; at once where its parent has ended before it could be told."""
        code = 1
        try:
            gc.disable()
            for fd in self.fds:
                os.close(fd)
            stand_back()
            if os.getppid() != parent:
                return
            write_snapshots(path, process, tails.list_snapshots())
            code = 0
        except BaseException as error:  # noqa: BLE001 - whatever it is, no line of the parent's may be run here
            with suppress(OSError):
                os.write(tell, describe_error(error).encode())
        finally:
            os._exit(code)

    def look(self, *, wait: bool = False) -> str | None:
        """Return what the last child has said, empty if it has written; None while it is at it."""
        if not self.child:
            return self.said
        found, status = os.waitpid(self.child, 0 if wait else os.WNOHANG)
        if not found:
            return None
        with open(self.told, "rb") as pipe:  # noqa: PTH123 - it has no path
            text = pipe.read().decode()
        if code := os.waitstatus_to_exitcode(status):
            forget_draft(self.path, self.child)
            self.said = text or f"the process that writes them has ended with code {code}"
        self.child = 0
        return self.said


def stand_back() -> None:
    """Give way to all others: be slow where the processor is wanted, and be killed first where memory is short.

    End with the parent, and after ``LONGEST``.
    """
    for sign in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(sign, signal.SIG_DFL)
    signal.alarm(LONGEST)
    os.nice(NICE)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        Path("/proc/self/oom_score_adj").write_text("1000")
