"""How long to wait before a driver is started again, by what it ended with."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.errors import (
    ChangedByOthers,
    ConnectionMissing,
    DefinitionError,
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
        OffsetGap,
        LookupBroken,
        OutOfStep,
        ChangedByOthers,
    )
}


@dataclass(frozen=True)
class Pace:
    """How long things take, in seconds."""

    tick: float = 0.5
    """Between two looks at the driver."""
    renew: float = 5.0
    """Between two renewals of the lease."""
    grace: float = 90.0
    """How long a driver may take to stop before it is killed."""
    back_off: float = 1.0
    """Before the first restart; each further failure in a row doubles it."""
    most: float = 30.0
    """The longest wait before a restart."""
    settled: float = 120.0
    """After a life this long, or a committed epoch, failures are counted from one again."""
    strikes: int = 20
    """A number, not seconds: so many failures in a row make the supervisor give up."""
    look: float = 15.0
    """Between two looks at the alerts."""


def wait_before(code: int, strikes: int, pace: Pace) -> float:
    """Return the seconds before the next start: 1, 2, 4 .. 30, and at once the most where a person must act."""
    if code in WAITS_FOR_A_PERSON:
        return pace.most
    return min(pace.most, pace.back_off * 2.0 ** (min(strikes, 16) - 1))
