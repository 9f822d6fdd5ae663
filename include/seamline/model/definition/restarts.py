"""When a driver that has failed is started again, as a user declares it.

The policies are Flink's restart strategies with one difference: they count failures in a row, and the count starts over
after a committed epoch or two minutes of running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.time.intervals import parse_duration

REMEMBERED = 1_000
"""How many failures the supervisor remembers, for a policy that counts them by time."""


@dataclass(frozen=True)
class Failures:
    """What a policy decides by; the newest failure is included."""

    row: int
    """How many in a row, 1 or more."""
    ages: Sequence[float]
    """How many seconds ago each remembered failure was, in any order; 0 for the newest."""
    needs_person: bool = False
    """Whether only a person can remedy the newest: a wrong definition, a topic that is gone."""


@dataclass(frozen=True)
class RestartPolicy:
    """What a supervisor does after a failure of its driver."""

    def find_pause(self, failures: Failures) -> float | None:
        """Return the seconds until the next start; None to give up."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExponentialDelay(RestartPolicy):
    """Wait longer after each failure in a row: ``first``, and then twice as long each time, up to ``longest``.

    After a failure that only a person can remedy it waits ``longest`` at once.
    """

    first: str = "1 second"
    """The wait after the first failure."""
    longest: str = "30 seconds"
    """The longest wait."""
    failures: int = 20
    """The supervisor gives up after this many failures in a row; 0 for never."""

    def find_pause(self, failures: Failures) -> float | None:
        if 0 < self.failures <= failures.row:
            return None
        longest = parse_duration(self.longest).total_seconds()
        if failures.needs_person:
            return longest
        return min(longest, parse_duration(self.first).total_seconds() * 2.0 ** (min(failures.row, 32) - 1))


@dataclass(frozen=True)
class FixedDelay(RestartPolicy):
    """Wait the same time after each failure."""

    delay: str = "10 seconds"
    """The wait before each start."""
    failures: int = 20
    """The supervisor gives up after this many failures in a row; 0 for never."""

    def find_pause(self, failures: Failures) -> float | None:
        return None if 0 < self.failures <= failures.row else parse_duration(self.delay).total_seconds()


@dataclass(frozen=True)
class FailureRate(RestartPolicy):
    """Wait the same time after each failure, and give up after too many within a time, even if epochs came between."""

    failures: int = 5
    """The supervisor gives up after this many failures ``within`` a time; 1,000 at most, 0 for never."""
    within: str = "10 minutes"
    """The time in which failures are counted, up to the newest."""
    delay: str = "10 seconds"
    """The wait before each start."""

    def find_pause(self, failures: Failures) -> float | None:
        within = parse_duration(self.within).total_seconds()
        if 0 < self.failures <= sum(age <= within for age in failures.ages):
            return None
        return parse_duration(self.delay).total_seconds()


@dataclass(frozen=True)
class NoRestart(RestartPolicy):
    """Give up at the first failure: a person, or whatever runs ``seamline supervise``, starts the stream again."""

    def find_pause(self, failures: Failures) -> None:
        return None


RESTARTS = (ExponentialDelay, FixedDelay, FailureRate, NoRestart)
"""The policies that there are."""
