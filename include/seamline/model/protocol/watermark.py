"""How far event time has come: per lane the largest event time minus the bound, over lanes not idle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Protocol

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

    def counts(self, _lane: Lane) -> bool:
        """Return that each lane counts for the watermark."""
        return True

    def bound_of(self, _lane: Lane) -> timedelta:
        """Return the bound, which is the same for all lanes."""
        return self.bound

    def idle_of(self, _lane: Lane) -> timedelta:
        """Return the silence, which is the same for all lanes."""
        return self.idle


class LanePolicy(Protocol):
    """What the watermark asks of a policy."""

    def counts(self, lane: Lane, /) -> bool:
        """Return whether a lane counts for the watermark at all."""

    def bound_of(self, lane: Lane, /) -> timedelta:
        """Return how far the watermark stays behind a lane's newest event time."""

    def idle_of(self, lane: Lane, /) -> timedelta:
        """Return the silence after which a lane that is read to its end counts as idle."""


@dataclass(frozen=True)
class SourceWatermarks:
    """The policies of several sources: a lane has that of the source whose topic it is of."""

    by_topic: Mapping[str, Watermark]
    """By topic id. A lane of another topic, of which rows were read once, has the longest bound and silence."""
    apart: frozenset[str] = frozenset()
    """The ids of topics that do not count for the watermark: their records come as late as they may."""

    @cached_property
    def bounds(self) -> Mapping[str, timedelta]:
        """The bounds by topic id."""
        return {id: policy.bound for id, policy in self.by_topic.items()}

    @cached_property
    def silences(self) -> Mapping[str, timedelta]:
        """The silences by topic id."""
        return {id: policy.idle for id, policy in self.by_topic.items()}

    def counts(self, lane: Lane) -> bool:
        """Return whether a lane counts for the watermark at all."""
        return lane.topic_id not in self.apart

    def bound_of(self, lane: Lane) -> timedelta:
        """Return how far the watermark stays behind a lane's newest event time."""
        known = self.bounds.get(lane.topic_id)
        return max(self.bounds.values()) if known is None else known

    def idle_of(self, lane: Lane) -> timedelta:
        """Return the silence after which a lane that is read to its end counts as idle."""
        known = self.silences.get(lane.topic_id)
        return max(self.silences.values()) if known is None else known


def advance_watermark(
    previous: datetime | None,
    lanes: Collection[Lane],
    largest: Mapping[Lane, datetime],
    idle: Collection[Lane],
    policy: LanePolicy,
) -> datetime | None:
    """Return the pipeline's watermark; it never falls.

    ``largest`` is the largest event time seen per lane. A lane that is neither idle nor has shown an event
    holds the watermark back. With every lane idle, all there is has been read: the lane that is furthest decides.
    """
    active = [lane for lane in lanes if lane not in idle]
    reached: datetime | None = None
    if not active:
        reached = max((at - policy.bound_of(lane) for lane, at in largest.items()), default=None)
    elif all(lane in largest for lane in active):
        reached = min(largest[lane] - policy.bound_of(lane) for lane in active)
    return max((moment for moment in (previous, reached) if moment is not None), default=None)
