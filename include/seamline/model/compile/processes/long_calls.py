"""Calls of users' code that take too long are broken off, between two of its steps.

What Python cannot break off, such as a search by a regular expression, is ended with its process, where that may be
ended: a stream's fold by its driver, a task by itself.
"""

from __future__ import annotations

import ctypes
import faulthandler
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from seamline.model.compile.processes.compiled_process import CompiledProcess, require_same_code
from seamline.model.functions.folding import FunctionUnusable, Watch

LOOKS = 4
"""How often a call is looked at before its time is over."""
FOR_EVER = 30.0
"""Seconds, at least, after which a process is ended whose call nothing breaks off."""


class CallTooLong(BaseException):
    """Is raised in the thread whose call takes too long; ``except Exception`` does not catch it, a bare one does."""


@contextmanager
def break_off_long_calls(
    process: CompiledProcess, ended_after: float | None = None
) -> Iterator[CompiledProcess]:
    """Give a process whose calls, made by this thread, raise FunctionUnusable where they take too long.

    FunctionUnusable where this process of the operating system has imported other code than the fold's.

    ``ended_after`` is after how many seconds this process of the operating system ends itself, with its stack on
    stderr, where a call cannot be broken off; None for never.
    """
    require_same_code(process.function)
    own, over = replace(process), threading.Event()
    given = own.fold.watch, process.budget.seconds, threading.get_ident(), over, ended_after
    watcher = threading.Thread(target=watch_calls, args=given, daemon=True, name="long-calls")
    try:
        watcher.start()
        try:
            yield own
        finally:
            over.set()
            watcher.join()
            if ended_after is not None:
                faulthandler.cancel_dump_traceback_later()
    except CallTooLong:
        raise FunctionUnusable(describe_long_call(process)) from None


def describe_long_call(process: CompiledProcess) -> str:
    """Say which call took too long."""
    name, seconds = process.function.name, process.budget.seconds
    return f"{name}: a call took longer than the {seconds:g} s of timeout="


def find_task_limit(process: CompiledProcess) -> float:
    """Return after how many seconds a task ends itself whose call of a function cannot be broken off."""
    return max(FOR_EVER, 3 * process.budget.seconds)


def watch_calls(
    watch: Watch, seconds: float, thread: int, over: threading.Event, ended_after: float | None = None
) -> None:
    """Raise CallTooLong in a thread whenever a call takes too long; ``watch`` is a fold's.

    The end of the process is put off at each look, for which this thread needs the lock that such a call may hold.
    """
    look = CallLook(watch, seconds)
    if ended_after is not None:
        faulthandler.dump_traceback_later(ended_after, exit=True)
    while not over.wait(seconds / LOOKS):
        if not look.is_too_long():
            if ended_after is not None:
                faulthandler.dump_traceback_later(ended_after, exit=True)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(CallTooLong))


class CallLook:
    """Looks at a fold's watch from time to time."""

    def __init__(self, watch: Watch, seconds: float) -> None:
        self.watch, self.seconds = watch, seconds
        self.seen, self.since = watch[0], time.monotonic()

    def is_too_long(self) -> bool:
        """Return whether one call has been made for as long as it may take, at least."""
        now, seen = time.monotonic(), self.watch[0]
        if seen != self.seen or not seen % 2:
            self.seen, self.since = seen, now
        return now - self.since >= self.seconds
