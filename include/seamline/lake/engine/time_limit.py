"""How long an answer may take: its thread's queries are broken off, and its loops end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from seamline.lake.engine.duckdb_connections import find_interrupt
from seamline.runtime.deadline import limit_thread_time, too_slow

SECONDS = 30.0
"""How long an answer may take, if nobody says how long."""


@contextmanager
def interrupt_after(seconds: float = SECONDS) -> Iterator[None]:
    """Break off this thread's work after so long: its queries, and its loops where they look at the time; TooSlow."""
    interrupt, done = find_interrupt(), threading.Event()

    def interrupting() -> None:
        # Again and again: between two queries there is nothing to break off.
        over = done.wait(seconds)
        while not over:
            interrupt()
            over = done.wait(0.05)

    watch = threading.Thread(target=interrupting, daemon=True)
    watch.start()
    try:
        with limit_thread_time(seconds):
            try:
                yield
            except duckdb.InterruptException:
                raise too_slow() from None
    finally:
        done.set()
        watch.join()
