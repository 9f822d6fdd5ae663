"""Whether a driver that runs also gets on: progress counts, not a process id."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """What was last seen of a driver, at ``since`` seconds of some clock.

    ``mark`` changes with every epoch and every other sign of work; it is empty until the driver is up. ``signs``
    counts its changes: the first is that it is up, the second its first epoch.
    """

    mark: str
    since: float
    signs: int = 0

    def look(self, mark: str, now: float) -> Seen:
        """Take in another look."""
        return self if mark == self.mark else Seen(mark, now, self.signs + 1)


def overdue(seen: Seen, now: float, *, stuck_after: float, starts_within: float) -> bool:
    """Tell whether it is time to ask Kafka whether there is something to read: seconds without a sign.

    A driver that has yet to hold its first epoch is given the time of a start: everything is cold.
    """
    return now - seen.since >= (stuck_after if seen.signs > 1 else max(starts_within, stuck_after))


def verdict(seen: Seen, now: float, lag: int | None) -> str:
    """Say why an overdue driver is to be started anew; empty where it has nothing to do.

    ``lag`` is the records that it has not read, None where Kafka does not tell: another driver could do no more.
    """
    silent = now - seen.since
    if not seen.mark:
        return f"the driver was not up within {silent:.0f} s"
    if not lag:
        return ""
    return f"the driver is stuck: no epoch for {silent:.0f} s, with {lag} records to read"
