"""Tables in a bucket that a thread follows for as long as somebody reads them, so that no answer waits for a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

from seamline.lake.storage.kept.table_reading import Reading
from seamline.lake.storage.log_follower import since_boot
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free

LEAST = 0.1
"""Seconds between two rounds of questions, however young answers are to be."""
IDLE = 60.0
"""Seconds after which a table that nobody has read since is no longer followed."""


class Follower:
    """Asks tables for their news again and again, all at once, until nobody has read any for a while."""

    def __init__(self, idle: float = IDLE) -> None:
        self.idle = idle
        self.until: dict[Location, float] = {}
        self.every = idle
        self.lock = threading.Lock()
        self.sooner = threading.Event()
        self.thread: threading.Thread | None = None

    def follow(self, roots: Iterable[Location], every: float) -> None:
        """Follow tables from now on, asked at least every so many seconds; those on disk need nobody to."""
        with self.lock:
            self.until |= dict.fromkeys(
                (root for root in roots if not is_asking_free(root)), since_boot() + self.idle
            )
            if not self.until:
                return
            every = max(every, LEAST)
            if every < self.every:
                self.every = every
                self.sooner.set()
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self.work, name="follow", daemon=True)
                self.thread.start()

    def work(self) -> None:
        """Ask until there is nothing to follow, or this process ends."""
        # Threads can no longer be begun once the interpreter is about to end.
        with suppress(RuntimeError):
            while roots := self.list_wanted():
                Reading(since_boot(), roots).ask()
                self.sooner.wait(self.every)
                self.sooner.clear()

    def close(self) -> None:
        """Follow nothing more, and wait for the thread to end."""
        with self.lock:
            self.until.clear()
            thread = self.thread
        self.sooner.set()
        if thread:
            thread.join()

    def list_wanted(self) -> list[Location]:
        """List the tables that were read of late; without any the thread is over."""
        with self.lock:
            now = since_boot()
            self.until = {root: until for root, until in self.until.items() if until > now}
            if not self.until:
                self.thread, self.every = None, self.idle
            return [*self.until]


FOLLOWER = Follower()
"""This process's."""
