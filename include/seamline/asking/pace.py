"""How fast another system is asked: so many requests in a second, and hardly at all while it does not answer."""

from __future__ import annotations

BURST = 0.1
"""Seconds of requests that may be made at once after a silence."""
FAILURES = 20
"""Failures in a row after which the system counts as away."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds until it is tried again; twice as many after each attempt."""


class Pace:
    """Spreads requests over time, ``per_second`` of them at most; 0 for any number."""

    def __init__(self, per_second: int) -> None:
        self.each = 1 / per_second if per_second else 0.0
        self.free = 0.0

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may be made."""
        return max(0.0, self.free - BURST - now)

    def take(self, now: float, requests: int) -> None:
        """Note that so many requests are made."""
        self.free = max(self.free, now) + requests * self.each


class Circuit:
    """Says whether the system answers: it is open, and calls are rare, from ``FAILURES`` in a row to a success."""

    def __init__(self) -> None:
        self.failures, self.since, self.again, self.wait = 0, 0.0, 0.0, FIRST_WAIT

    @property
    def is_open(self) -> bool:
        """Return whether the system counts as away."""
        return self.failures >= FAILURES

    def delay(self, now: float, flying: int) -> float | None:
        """Return the seconds until a call may be made while so many are; None until one of those has ended."""
        if not self.is_open:
            return 0.0
        return None if flying else max(0.0, self.again - now)

    def succeed(self) -> None:
        """Note that a call was answered."""
        self.failures, self.wait = 0, FIRST_WAIT

    def fail(self, now: float) -> None:
        """Note that a call has failed."""
        if not self.failures:
            self.since = now
        was_open, self.failures = self.is_open, self.failures + 1
        if self.is_open and (not was_open or now >= self.again):
            self.wait = min(self.wait * 2, LONGEST_WAIT) if was_open else FIRST_WAIT
            self.again = now + self.wait
