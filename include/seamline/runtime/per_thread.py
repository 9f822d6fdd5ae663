"""One of something for each thread, which the child of a fork never frees."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_orphaned: list[object] = []


class PerThread(Generic[T]):
    """Made when a thread first asks, and let go after the thread has ended.

    In the child of a fork Python frees what only the parent's other threads had. A DuckDB that is freed there waits
    for threads that are not there: the child dies of it, or spins.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make
        self._own = threading.local()
        self._held: dict[threading.Thread, T] = {}
        os.register_at_fork(after_in_child=self._orphan)

    def __call__(self) -> T:
        """Return this thread's."""
        if not hasattr(self._own, "it"):
            for thread in [thread for thread in list(self._held) if not thread.is_alive()]:
                self._held.pop(thread, None)
            self._own.it = self._held[threading.current_thread()] = self.make()
        found: T = self._own.it
        return found

    def _orphan(self) -> None:
        _orphaned.append(dict(self._held))
        self._held.clear()
