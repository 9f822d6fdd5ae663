"""A clock that only a test moves, for one who waits for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds that pass only where somebody waits; ``meanwhile`` happens at each wait."""

    now: float = 1000.0
    meanwhile: Callable[[], object] = lambda: None
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.waits.append(seconds)
        self.meanwhile()
