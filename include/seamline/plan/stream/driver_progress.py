"""Whether a driver that runs also gets on: progress counts, not a process id."""

from __future__ import annotations

from dataclasses import dataclass, replace

LOOKS = 4
"""How often Kafka is asked within the time after which a driver is stuck."""


@dataclass(frozen=True)
class LastSeen:
    """What was last seen of a driver."""

    mark: str
    """Changes with every epoch and every other sign of work; empty until the driver is up."""
    since: float
    """When the mark was first seen, in seconds of some clock."""
    signs: int = 0
    """How often the mark has changed: first when the driver is up, then with its first epoch."""
    lag: int = 0
    """Records that Kafka had for it, and it had not read, when Kafka was last asked."""
    asked: float | None = None
    """When Kafka was last asked, by the same clock; None for never."""
    behind: float | None = None
    """The first moment from which on there was a lag; None if there is none."""

    def add_look(self, mark: str, now: float) -> LastSeen:
        """Take in another look."""
        return self if mark == self.mark else LastSeen(mark, now, self.signs + 1)

    def add_lag(self, lag: int | None, now: float) -> LastSeen:
        """Take in Kafka's answer; None where it has none: another driver could do no more.

        Records that have come to an idle topic just now have waited for no time at all.
        """
        if not lag:
            return replace(self, lag=0, asked=now, behind=None)
        return replace(self, lag=lag, asked=now, behind=now if self.behind is None else self.behind)


def choose_patience(seen: LastSeen, *, stuck_after: float, starts_within: float) -> float:
    """Return the seconds that a driver has for what it is at.

    One that has yet to commit its first epoch has the time of a start: everything is cold.
    """
    return stuck_after if seen.signs > 1 else max(starts_within, stuck_after)


def is_check_due(seen: LastSeen, now: float, patience: float) -> bool:
    """Return whether it is time to ask Kafka whether there is something to read."""
    before = seen.since if seen.asked is None else seen.asked
    return bool(seen.mark) and now - before >= patience / LOOKS


def find_restart_reason(seen: LastSeen, now: float, patience: float) -> str:
    """Say why a driver is to be started again; empty where it gets on, or has nothing to do."""
    silent = now - seen.since
    if not seen.mark:
        return f"the driver was not up within {silent:.0f} s" if silent >= patience else ""
    if seen.behind is None or now - seen.behind < patience:
        return ""
    return f"the driver is stuck: no epoch for {silent:.0f} s, with {seen.lag} records to read"
