"""When changes that wait are sent: at once, or once they are old enough, or nothing has followed them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta


@dataclass(frozen=True)
class Pace:
    """How long changes wait."""

    age: timedelta = timedelta(0)
    """How long at most."""
    idle: timedelta = timedelta(0)
    """How long after the last one."""


@dataclass(frozen=True)
class Waiting:
    """What a sink has seen of its serving table since it last sent; times are seconds of a clock that only rises."""

    newest: int = -1
    """The newest version that was seen."""
    since: float | None = None
    """Since when something waits; None where nothing does."""
    changed: float = 0.0
    """When the newest version was first seen."""

    def see(self, newest: int, shown: int, now: float) -> Waiting:
        """Return what is known after a look; ``shown`` is the version that the target shows."""
        if newest <= shown:
            return Waiting(newest)
        changed = now if newest != self.newest else self.changed
        return replace(self, newest=newest, since=now if self.since is None else self.since, changed=changed)

    def is_due(self, pace: Pace, now: float) -> bool:
        """Return whether what waits is to be sent."""
        if self.since is None:
            return False
        old, quiet = now - self.since, now - self.changed
        return old >= pace.age.total_seconds() or quiet >= pace.idle.total_seconds()
