"""A supervisor's intervals and timeouts, its restarts, and which ends of a driver wait for a person."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from seamline.model.definition.restarts import REMEMBERED, Failures, RestartPolicy
from seamline.model.errors import (
    ChangedByOthers,
    ConnectionMissing,
    DefinitionError,
    KafkaRefused,
    LookupBroken,
    OffsetGap,
    OutOfStep,
    SetupError,
    TopicMissing,
    TopicRecreated,
)

WAITS_FOR_A_PERSON = {
    error.exit_code
    for error in (
        DefinitionError,
        SetupError,
        ConnectionMissing,
        TopicMissing,
        TopicRecreated,
        KafkaRefused,
        OffsetGap,
        LookupBroken,
        OutOfStep,
        ChangedByOthers,
    )
}
"""Exit codes of a driver that recur at each start until somebody has acted."""


@dataclass(frozen=True)
class Pace:
    """How long things take, in seconds."""

    tick: float = 0.5
    """Between two looks at the driver."""
    renew: float = 5.0
    """Between two renewals of the lease."""
    grace: float = 90.0
    """How long a driver may take to stop before it is killed."""
    settled: float = 120.0
    """After a life this long, or a committed epoch, failures are counted from one again."""
    look: float = 15.0
    """Between two looks at the alerts."""


class Restarts:
    """The failures of a supervisor's drivers, and what the restart policy says after each."""

    def __init__(self, policy: Callable[[], RestartPolicy]) -> None:
        self.policy = policy
        self.failed: deque[float] = deque(maxlen=REMEMBERED)

    def forgive(self) -> None:
        """Forget what failed before a person restarted the driver."""
        self.failed.clear()

    def find_pause(self, code: int, row: int, now: float) -> float | None:
        """Return the seconds until the start after a failure, the ``row``-th in a row; None to give up."""
        self.failed.append(now)
        ages = [now - each for each in self.failed]
        return self.policy().find_pause(Failures(row, ages, code in WAITS_FOR_A_PERSON))
