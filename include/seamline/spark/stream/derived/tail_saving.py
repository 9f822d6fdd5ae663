"""Saves the tails of a fold while it goes on: a child of its process, which has them as they were, writes a file."""

from __future__ import annotations

import gc
import os
import signal
import time
import traceback
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from seamline.lake.joins.snapshots import write_snapshots
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.tails import Tails

NICE = 10
"""How far behind others the child stands where they want the processor."""
LONGEST = 900.0
"""Seconds after which a child is ended."""
MOST_SAID = 4_000
"""Bytes that are kept of what a child says of an error; a pipe has room for them."""


class TailSaving:
    """The child that writes, one at a time; ``fds`` are what it has of its parent and must let go of."""

    def __init__(self, fds: Iterable[int]) -> None:
        self.fds = [*fds]
        self.child, self.began, self.told = 0, 0.0, -1
        self.refused = ""

    def begin(self, path: Path, process: CompiledProcess, tails: Tails) -> None:
        """Have a child write the snapshots of all keys; ``look`` says where none could be had."""
        told, tell = os.pipe()
        try:
            with warnings.catch_warnings():
                # Arrow has threads, which wait for work; nothing else has any here.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
        except OSError as error:
            os.close(told)
            os.close(tell)
            self.refused = f"{type(error).__name__}: {error}"
            return
        if not child:
            self.write(path, process, tails, tell)
        os.close(tell)
        self.child, self.began, self.told = child, time.monotonic(), told

    def write(self, path: Path, process: CompiledProcess, tails: Tails, tell: int) -> None:
        """Write, and end this process."""
        code = 1
        try:
            gc.disable()
            for fd in self.fds:
                os.close(fd)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.nice(NICE)
            write_snapshots(path, process, tails.list_snapshots())
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, no line of the parent's may be run here
            with suppress(OSError):
                os.write(tell, traceback.format_exc().encode(errors="replace")[-MOST_SAID:])
        finally:
            os._exit(code)

    def look(self, *, wait: bool = False) -> str | None:
        """Return what a child has said that has come to its end, empty if it has written; None while there is none."""
        if not self.child:
            said, self.refused = self.refused, ""
            return said
        if not wait and time.monotonic() - self.began > LONGEST:
            os.kill(self.child, signal.SIGKILL)
        found, status = os.waitpid(self.child, 0 if wait else os.WNOHANG)
        if not found:
            return None
        text = os.read(self.told, MOST_SAID).decode(errors="replace").strip()
        os.close(self.told)
        self.child = 0
        code = os.waitstatus_to_exitcode(status)
        return "" if not code else text.rpartition("\n")[2] or f"its child has ended with code {code}"
