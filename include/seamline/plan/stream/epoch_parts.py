"""Decision of an epoch: whether its states go through Spark's shuffle."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_STATES = 150_000
"""Partial states of an epoch from which parts merge them faster than the driver does."""


@dataclass(frozen=True)
class StatesSeen:
    """What earlier epochs have shown: partial states for each record, at the most of the last ones."""

    per_record: float = 0.0
    """Of all views together, before they are merged."""

    def take(self, records: int, states: int) -> StatesSeen:
        """Take in an epoch; what was seen before fades, so that one epoch of few keys changes little."""
        if not records:
            return self
        return StatesSeen(max(states / records, 0.9 * self.per_record))

    def are_many(self, records: int) -> bool:
        """Return whether an epoch of so many records is likely to have so many states that parts merge them."""
        return records * self.per_record >= LEAST_STATES
