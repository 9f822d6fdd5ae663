"""Several ways to the same answer, asked in turn: what a machine does beside them hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import psutil

from benchmarks.machine import cpu_seconds

T = TypeVar("T")


@dataclass(frozen=True)
class Taken:
    """What one way took, turn by turn; the first is cold."""

    seconds: list[float]
    """Wall time."""
    cpu: list[float]
    """CPU seconds of this process and all it has started."""

    @property
    def warm(self) -> float:
        """The median of the turns after the first, in seconds."""
        return median(self.seconds[1:])

    @property
    def warm_cpu(self) -> float:
        """The same of CPU seconds."""
        return median(self.cpu[1:])


def take_turns(
    asked: Mapping[str, Callable[[], T]], rounds: int, require: Callable[[str, T], None] = lambda *_: None
) -> dict[str, Taken]:
    """Ask every way once a round, after a round to warm up; ``require`` refuses a wrong answer of a way."""
    taken = {name: Taken([], []) for name in asked}
    me = psutil.Process().pid
    for _ in range(rounds + 1):
        for name, ask in asked.items():
            before, start = cpu_seconds(me), time.monotonic()
            found = ask()
            taken[name].seconds.append(time.monotonic() - start)
            taken[name].cpu.append(cpu_seconds(me) - before)
            require(name, found)
    return taken
