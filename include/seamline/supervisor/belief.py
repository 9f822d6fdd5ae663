"""A holder's own belief in its lease: it ends before anybody else may take the lease for lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from seamline.lake.tables.control_table import TTL


class Belief:
    """Holds until ``ttl`` seconds after the last renewal that landed was first sent, by a clock that nobody sets."""

    def __init__(self, clock: Callable[[], float], ttl: float = TTL.total_seconds()) -> None:
        self.clock, self.ttl = clock, ttl
        self.until = float("-inf")

    def confirm(self, sent: float) -> None:
        """Confirm the lease: a renewal that was sent then has landed."""
        self.until = sent + self.ttl

    @property
    def over(self) -> bool:
        """True once another may have the lease."""
        return self.clock() >= self.until


class Watchdog:
    """Acts once belief is over, also while its owner waits for a renewal that does not come back."""

    def __init__(self, belief: Belief, act: Callable[[], object], *, every: float) -> None:
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, args=(belief, act, every), daemon=True)
        self.thread.start()

    def _watch(self, belief: Belief, act: Callable[[], object], every: float) -> None:
        while not self.ended.wait(every):
            if belief.over:
                act()

    def close(self) -> None:
        """Stop watching."""
        self.ended.set()
        self.thread.join()
