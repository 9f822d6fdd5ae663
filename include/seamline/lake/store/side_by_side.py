"""Requests that are sent side by side, by threads that are kept: to begin a thread takes a part of a round trip."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free

T = TypeVar("T")
U = TypeVar("U")
ON_DISK, IN_BUCKET = 4, 32
"""How many commits are made at once: on disk more would only wait for each other."""


class Threads:
    """Threads for requests of one kind, which wait for none of the same kind."""

    def __init__(self, name: str, at_once: int) -> None:
        self.name, self.at_once = name, at_once
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        # They are not there in the child of a fork, which would wait for them for ever.
        os.register_at_fork(after_in_child=self._forget)

    def map(self, act: Callable[[T], U], items: Iterable[T]) -> list[U]:
        """Do something with each item, with the first in this thread; the first error is raised once all are done."""
        first, *others = [*items]
        waiting = [self.submit(act, each) for each in others]
        try:
            found = act(first)
        finally:
            for each in waiting:
                each.exception()
        return [found, *(each.result() for each in waiting)]

    def submit(self, act: Callable[[T], U], item: T) -> Future[U]:
        """Do something beside what follows."""
        return self._open().submit(act, item)

    def finish(self) -> None:
        """Wait until all that was begun has come to an end."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _open(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.at_once, thread_name_prefix=self.name)
            return self._pool

    def _forget(self) -> None:
        self._pool, self._lock = None, threading.Lock()


def commits_at_once(warehouse: Location) -> int:
    """Return how many commits to different tables of a warehouse are worth being made at once."""
    return IN_BUCKET if not is_asking_free(warehouse) else ON_DISK
