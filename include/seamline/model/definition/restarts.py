"""When a driver that has failed is started again, as a user declares it.

The policies are those of Flink's restart strategies, but that a driver which gets on is forgiven: failures in a row are
counted, from one again after a committed epoch or two minutes of life.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.time.intervals import parse_duration

REMEMBERED = 1_000
"""So many failures are remembered, for a policy that counts them by time."""


@dataclass(frozen=True)
class Failures:
    """What a policy decides by, the newest failure included."""

    row: int
    """How many in a row, 1 or more."""
    ages: Sequence[float]
    """How many seconds ago each was that is remembered, in any order; 0 for the newest."""
    needs_person: bool = False
    """Whether the newest stays until a person acts: a wrong definition, a topic that is gone."""


@dataclass(frozen=True)
class RestartPolicy:
    """What a supervisor does after a failure of its driver."""

    def find_pause(self, failures: Failures) -> float | None:
        """Return the seconds until the next start; None to give up."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExponentialDelay(RestartPolicy):
    """Wait longer after each failure in a row: ``first``, and then twice as long each time, up to ``longest``.

    What only a person can mend is waited for ``longest`` at once.
    """

    first: str = "1 second"
    """The wait after the first failure."""
    longest: str = "30 seconds"
    """The longest wait."""
    failures: int = 20
    """So many failures in a row make the supervisor give up; 0 for never."""

    def find_pause(self, failures: Failures) -> float | None:
        if 0 < self.failures <= failures.row:
            return None
        longest = parse_duration(self.longest).total_seconds()
        if failures.needs_person:
            return longest
        return min(longest, parse_duration(self.first).total_seconds() * 2.0 ** (min(failures.row, 32) - 1))


@dataclass(frozen=True)
class FixedDelay(RestartPolicy):
    """Wait as long after each failure."""

    delay: str = "10 seconds"
    """The wait before each start."""
    failures: int = 20
    """So many failures in a row make the supervisor give up; 0 for never."""

    def find_pause(self, failures: Failures) -> float | None:
        return None if 0 < self.failures <= failures.row else parse_duration(self.delay).total_seconds()


@dataclass(frozen=True)
class FailureRate(RestartPolicy):
    """Wait as long after each failure, and give up where too many come close together, whatever is done in between."""

    failures: int = 5
    """So many failures ``within`` a time make the supervisor give up, 1,000 at most; 0 for never."""
    within: str = "10 minutes"
    """The time in which they are counted, up to the newest."""
    delay: str = "10 seconds"
    """The wait before each start."""

    def find_pause(self, failures: Failures) -> float | None:
        within = parse_duration(self.within).total_seconds()
        if 0 < self.failures <= sum(age <= within for age in failures.ages):
            return None
        return parse_duration(self.delay).total_seconds()


@dataclass(frozen=True)
class NoRestart(RestartPolicy):
    """Give up at the first failure: a person, or what runs the supervisor, starts the stream again."""

    def find_pause(self, failures: Failures) -> None:
        return None


RESTARTS = (ExponentialDelay, FixedDelay, FailureRate, NoRestart)
"""The policies that there are."""
