"""What a sink does next: from which version of the serving table to which, and where in their difference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from seamline.model.protocol.sinks.marks import join_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain

NOTHING = -1
"""The version before the first: no rows."""


@dataclass(frozen=True)
class SinkStep:
    """The way from one version of a serving table to a later one, whose difference is written in its order."""

    start: int
    """The version that the target shows; NOTHING for a target without rows."""
    end: int
    """The version that it shall show."""
    skip: int = 0
    """How many changes of the difference the target has already."""
    again: RangeAgain | None = None
    """A range that waits to be sent again at its end."""

    def reach(self, before: str, after: str, changes: int, *, whole: bool) -> SinkPosition:
        """Return the position after so many more changes; the marks are those of the two versions."""
        if whole:
            return SinkPosition(after, self.end, again=self.again)
        marks = join_marks(before, after)
        return SinkPosition(marks, self.start, self.end, self.skip + changes, self.again)


def plan_step(position: SinkPosition | None, newest: int) -> SinkStep | None:
    """Return what is to be done for a target at a position; None if it shows the newest version.

    A way that was begun is gone to its end first: the target shows neither of its ends. Versions between are skipped.
    """
    if position is None:
        return SinkStep(NOTHING, newest)
    if position.toward is not None:
        return SinkStep(position.version, position.toward, position.rows, position.again)
    return SinkStep(position.version, newest, 0, position.again) if position.version < newest else None


def find_range_due(position: SinkPosition | None) -> RangeAgain | None:
    """Return the range that is to be sent again now: at a version, and before the target goes on to the next."""
    return position.again if position is not None and position.toward is None else None


def begin_way(held: SinkPosition | None, position: SinkPosition) -> SinkPosition:
    """Return where a target stands while changes that lead to a position are written one after another.

    It is on the way there with none of them, so that all of them are written again by whoever takes over. Of a range
    that is sent again the position says so already.
    """
    if held is not None and not held.settled:
        return held
    if position.toward is not None:
        return replace(position, rows=0)
    before = held or SinkPosition("", NOTHING, position.version)
    return SinkPosition(
        join_marks(before.fingerprint, position.fingerprint), before.version, position.version
    )


def find_needed_version(positions: Iterable[SinkPosition]) -> int | None:
    """Return the version from which on sinks need what the serving table has shown; None if no sink does."""
    return min((each.needed for each in positions), default=None)
