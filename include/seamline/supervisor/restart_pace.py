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
    """How long things take, in seconds; every ``look`` alerts are told.

    ``strikes`` is how many failures in a row are enough; a driver that has held an epoch, or lived for ``settled``,
    begins a new row.
    """

    tick: float = 0.5
    renew: float = 5.0
    grace: float = 90.0
    back_off: float = 1.0
    most: float = 30.0
    settled: float = 120.0
    strikes: int = 20
    look: float = 15.0


def wait_before(code: int, strikes: int, pace: Pace) -> float:
    """Return the seconds before the next start: 1, 2, 4 .. 30, and at once the most where a person must act."""
    if code in WAITS_FOR_A_PERSON:
        return pace.most
    return min(pace.most, pace.back_off * 2.0 ** (min(strikes, 16) - 1))
