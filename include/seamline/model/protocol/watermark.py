"""How far event time has come: per lane the largest event time minus the bound, over lanes not idle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import parse_duration


@dataclass(frozen=True)
class Watermark:
    """The policy: how far out of order events may come, and when a silent lane stops holding others back."""

    out_of_orderness: str = "10 minutes"
    """How far the watermark stays behind a lane's newest event time, as a duration."""
    idle_after: str = "2 minutes"
    """A lane without a new record for so long, and read to its end, does not hold the watermark back."""

    @property
    def bound(self) -> timedelta:
        """Return the bound as a duration."""
        return parse_duration(self.out_of_orderness)

    @property
    def idle(self) -> timedelta:
        """Return the silence after which a lane that is read to its end counts as idle."""
        return parse_duration(self.idle_after)


def advance_watermark(
    previous: datetime | None,
    lanes: Collection[Lane],
    largest: Mapping[Lane, datetime],
    idle: Collection[Lane],
    bound: timedelta,
) -> datetime | None:
    """Return the pipeline's watermark; it never falls.

    ``largest`` is the largest event time seen per lane. A lane that is neither idle nor has shown an event
    holds the watermark back. With every lane idle, all there is has been read: the latest lane decides.
    """
    active = [lane for lane in lanes if lane not in idle]
    if active:
        found = None if any(lane not in largest for lane in active) else min(largest[lane] for lane in active)
    else:
        found = max(largest.values(), default=None)
    reached = None if found is None else found - bound
    return max((moment for moment in (previous, reached) if moment is not None), default=None)
