"""Calls of users' code that take too long are broken off, between two of its steps.

What Python cannot break off, such as a search by a regular expression, is ended with its process, if it has one of its
own.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import FunctionUnusable, Watch

LOOKS = 4
"""How often it is looked at a call before its time is over."""


class CallTooLong(BaseException):
    """Is raised in the thread whose call takes too long: no ``except Exception`` of users' code keeps it."""


@contextmanager
def break_off_long_calls(process: CompiledProcess) -> Iterator[CompiledProcess]:
    """Give a process whose calls, made by this thread, raise FunctionUnusable where they take too long."""
    own, over = replace(process), threading.Event()
    given = own.fold.watch, process.budget.seconds, threading.get_ident(), over
    watcher = threading.Thread(target=watch_calls, args=given, daemon=True, name="long-calls")
    try:
        watcher.start()
        try:
            yield own
        finally:
            over.set()
            watcher.join()
    except CallTooLong:
        raise FunctionUnusable(describe_long_call(process)) from None


def describe_long_call(process: CompiledProcess) -> str:
    """Say which call took too long."""
    name, seconds = process.function.name, process.budget.seconds
    return f"{name}: a call took longer than the {seconds:g} s of timeout="


def watch_calls(watch: Watch, seconds: float, thread: int, over: threading.Event) -> None:
    """Raise CallTooLong in a thread whenever a call takes too long; ``watch`` is a fold's."""
    look = CallLook(watch, seconds)
    while not over.wait(seconds / LOOKS):
        if look.is_too_long():
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
