"""What a page shows of many pipelines, kept in memory and read again in turn: a page never waits for all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from seamline.model.errors import TooSlow

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
WITHIN = 0.25
"""Seconds that a request spends on what is old."""
LOOKED_AT = 60.0
"""Seconds for which things are read again after somebody has looked."""
SHARE = 0.5
"""Part of its time for which the thread works at most."""
REST = 0.01
"""Seconds that it rests at least between two parts."""


@dataclass(frozen=True)
class Part(Generic[V]):
    """Something that was read."""

    value: V
    """What was found."""
    at: float
    """When it was asked for, by the clock."""
    took: float = 0.0
    """Seconds that it took."""


class KeptParts(Generic[K, V]):
    """Reads parts in turn, those first that are the most overdue, for as long as somebody looks at them.

    ``load`` reads one, given what was read before if anything was, and says of what it cannot read what there is to
    say; ``due`` is after how many seconds a part is old. A request reads what is old itself, for ``WITHIN`` seconds.
    It leaves what took longer, and what it was broken off at, to a thread that goes on after it; while that is at work,
    everything. The thread reads by what ``open_reader`` yields, which may be another process, or else by ``load``.
    """

    def __init__(
        self,
        load: Callable[[K, V | None], V],
        due: Callable[[K], float],
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[float], object] = time.sleep,
        open_reader: Callable[[], AbstractContextManager[Callable[[K, V | None], V]]] | None = None,
    ) -> None:
        self.load, self.due, self.clock, self.rest = load, due, clock, rest
        self.open_reader = open_reader or (lambda: nullcontext(load))
        self.parts: dict[K, Part[V]] = {}
        self.looked: dict[K, float] = {}
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def show(self, keys: Sequence[K]) -> dict[K, Part[V]]:
        """Return what is known of some parts now; those that are missing are being read."""
        began = self.clock()
        with self.lock:
            self.looked |= dict.fromkeys(keys, began)
        own = [key for key in keys if (part := self.parts.get(key)) is None or part.took < WITHIN]
        while (
            not self.is_at_work
            and (key := self.find_overdue(own)) is not None
            and self.clock() - began < WITHIN
        ):
            try:
                self.read(key, self.load)
            except TooSlow:
                break
        if self.find_overdue(keys) is not None:
            self.go_on()
        return {key: part for key in keys if (part := self.parts.get(key))}

    @property
    def is_at_work(self) -> bool:
        """Return whether the thread reads."""
        # Asked for once: the thread itself takes it away when it ends.
        thread = self.thread
        return thread is not None and thread.is_alive()

    def read(self, key: K, load: Callable[[K, V | None], V]) -> float:
        """Read one part; return how many seconds that took."""
        began = self.clock()
        before = self.parts.get(key)
        value = load(key, before.value if before else None)
        took = self.clock() - began
        self.parts[key] = Part(value, began, took)
        return took

    def find_overdue(self, keys: Sequence[K]) -> K | None:
        """Find the part that is the most overdue, what was never read first; None if all are new."""
        now = self.clock()

        def overdue(key: K) -> float:
            part = self.parts.get(key)
            return float("inf") if part is None else (now - part.at) / self.due(key)

        worst = max(keys, key=overdue, default=None)
        return worst if worst is not None and overdue(worst) > 1 else None

    def go_on(self) -> None:
        """Let the thread read the rest."""
        with self.lock:
            if not self.is_at_work:
                self.thread = threading.Thread(target=self.keep_reading, name="seamline-pages", daemon=True)
                self.thread.start()

    def keep_reading(self) -> None:
        """Read what is old as long as somebody looks, and rest in between; forget what nobody looks at."""
        with self.open_reader() as load:
            while keys := self.list_looked_at():
                key = self.find_overdue(keys)
                took = self.read(key, load) if key is not None else 0.0
                self.rest(max(took * (1 - SHARE) / SHARE, REST if key is not None else 0.5))

    def list_looked_at(self) -> list[K]:
        """List what somebody has looked at lately; nothing else is kept."""
        since = self.clock() - LOOKED_AT
        with self.lock:
            self.looked = {key: at for key, at in self.looked.items() if at > since}
            # A list, since requests add parts meanwhile.
            for key in [key for key in [*self.parts] if key not in self.looked]:
                del self.parts[key]
            if not self.looked:
                self.thread = None
            return [*self.looked]
