"""Every trouble for every kind of request to a store: what strikes, and the proof that it did."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.faults.rig.store_proxy import StoreProxy, Trouble

ENTRY = r"/_delta_log/\d{20}\.json"
UNASKED = 3.0
"""Seconds after which a trouble that no request has met gives way to another of the same kind of request."""


@dataclass(frozen=True)
class Strike:
    """A trouble of one kind of request, as the proxy tells it by method and path."""

    operation: str
    trouble: Trouble
    method: str
    path: str

    @property
    def label(self) -> str:
        """By what the proxy counts it."""
        return f"{self.operation}: {self.trouble}"


OPERATIONS = {
    "create": ("PUT", ENTRY),
    "get": ("GET", r"^(?!.*list-type)"),
    "head": ("HEAD", "."),
    "list": ("GET", "list-type"),
    "put": ("PUT", r"\.parquet|/scratch/"),
    "delete": ("POST|DELETE", "."),
}
"""What a client asks of a store: by method, and by what is found in the path."""
NAMED = ("master", "slices", "manifest", "control")
"""The tables of which a reply is lost by name."""
MATRIX = tuple(
    Strike(operation, trouble, *asked) for operation, asked in OPERATIONS.items() for trouble in Trouble
) + tuple(Strike(f"create in {name}", Trouble.LOST_REPLY, "PUT", f"/{name}(/.*)?{ENTRY}") for name in NAMED)
DELAYS = (6.0, 0.0, 0.1, 0.5, 2.0)
"""Seconds of each late and each stalled request in turn: the first is longer than a client waits for a commit."""


@dataclass
class Striker:
    """Has every trouble befall every kind of request ``times``, one of each kind at once; ``struck`` is what did.

    The connection of a request that is late by the first of the ``delays`` stays open: its client gives up by itself.
    """

    proxy: StoreProxy
    times: int
    chance: Random
    delays: Sequence[float] = DELAYS
    pause: float = 0.5
    """Seconds at most between two troubles of a kind of request: some of them have to go well."""
    matrix: Sequence[Strike] = MATRIX
    struck: Counter[Strike] = field(default_factory=Counter)
    armed: dict[str, tuple[Strike, float]] = field(default_factory=dict)
    """By operation: what is to befall the next such request, and since when."""
    spared: dict[str, float] = field(default_factory=dict)
    """By operation: until when requests are left alone."""

    @property
    def over(self) -> bool:
        """Return whether all has struck as often as it was to."""
        return not self.left()

    def left(self) -> list[Strike]:
        """List what has not struck as often as it is to."""
        return [each for each in self.matrix if self.struck[each] < self.times]

    def wants(self, *operations: str) -> bool:
        """Return whether something is still to befall one of these kinds of requests."""
        return any(each.operation in operations for each in self.left())

    def strike(self) -> None:
        """See what has struck, and let other troubles befall the next requests of those kinds."""
        seen, now = self.proxy.struck, time.monotonic()
        for operation, (each, since) in list(self.armed.items()):
            if (count := seen[each.label]) > self.struck[each]:
                self.struck[each] = count
                self.spared[operation] = now + self.chance.uniform(0, self.pause)
            elif now < since + UNASKED:
                continue
            else:
                self.proxy.forget(each.label)
            del self.armed[operation]
        left = self.left()
        self.chance.shuffle(left)
        for each in left:
            if each.operation not in self.armed and now >= self.spared.get(each.operation, 0.0):
                self.arm(each)
                self.armed[each.operation] = (each, now)

    def arm(self, each: Strike) -> None:
        """Let a trouble befall the next request of its kind."""
        seconds = self.delays[self.struck[each] % len(self.delays)]
        self.proxy.strike(
            each.trouble,
            each.path,
            method=each.method,
            seconds=seconds,
            held=each.trouble is Trouble.LATE and seconds == self.delays[0],
            label=each.label,
        )
