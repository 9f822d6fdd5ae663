"""Where we are in a topic: lanes, half-open offset ranges and vectors of end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seamline.model.errors import OffsetGap


@dataclass(frozen=True, order=True)
class Lane:
    """One partition of one incarnation of a topic; a recreated topic has other lanes."""

    topic_id: str
    """Kafka's id of the topic, a UUID."""
    partition: int
    """The partition's number, from 0."""

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Lane:
        """Read ``topic_id/partition``, the inverse of ``str``."""
        topic_id, _, partition = text.rpartition("/")
        return cls(topic_id, int(partition))


@dataclass(frozen=True, order=True)
class OffsetRange:
    """A half-open run of one lane's offsets."""

    lane: Lane
    """The lane."""
    start: int
    """The first offset that is in."""
    end: int
    """The first that is not."""

    def __len__(self) -> int:
        return self.end - self.start


Vector = Mapping[Lane, int]
"""End offset (exclusive) per lane: the next offset to read."""


def advance_vector(vector: Vector, ranges: Iterable[OffsetRange]) -> dict[Lane, int]:
    """Return the vector after ``ranges``; raise OffsetGap where one does not start at the vector's end."""
    ends = dict(vector)
    for part in ranges:
        expected = ends.get(part.lane, part.start)
        if part.start != expected:
            raise OffsetGap(
                f"Lane {part.lane}: the master ends at {expected}, the epoch starts at {part.start}.",
                hint="offsets are read without gaps; a lost range must be registered as a hole.",
            )
        ends[part.lane] = part.end
    return ends


def ranges_between(start: Vector, end: Vector) -> tuple[OffsetRange, ...]:
    """List what lies between two vectors, lanes without news left out."""
    return tuple(
        OffsetRange(lane, start.get(lane, 0), stop)
        for lane, stop in sorted(end.items())
        if stop > start.get(lane, 0)
    )
