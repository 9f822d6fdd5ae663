"""Where we are in a topic: lanes, half-open offset ranges and vectors of end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from seamline.model.errors import OffsetGap
from seamline.model.protocol.imported.table_rows import find_row_run

IMPORTED = "import:"
"""What the id of an import's lane begins with; no id of Kafka's does."""
OF_TABLE = "table:"
"""What the id of a Delta table's lane begins with."""


@dataclass(frozen=True, order=True)
class Lane:
    """One partition of one incarnation of a topic; a recreated topic has other lanes."""

    topic_id: str
    """Kafka's id of the topic, a UUID; of an import ``import:`` and its id, of a Delta table ``table:`` and its id."""
    partition: int
    """The partition's number, from 0."""

    @property
    def imported(self) -> bool:
        """Return whether it is of an import, of which Kafka knows nothing."""
        return self.topic_id.startswith(IMPORTED)

    @property
    def of_table(self) -> bool:
        """Return whether it is of a Delta table, of which Kafka knows nothing."""
        return self.topic_id.startswith(OF_TABLE)

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
        """Return how many offsets it has; of an epoch over a Delta table only those that stand for rows."""
        start, end = self.rows
        return end - start

    @property
    def rows(self) -> tuple[int, int]:
        """Return the offsets, end exclusive, that may have a record; of a table these are rows of one version."""
        return find_row_run(self.start, self.end) if self.lane.of_table else (self.start, self.end)


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


def subtract_offset_ranges(
    parts: Iterable[OffsetRange], taken: Iterable[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Take ranges out of others; an empty range stays as it is."""
    left = list(parts)
    for cut in taken:
        left = [piece for part in left for piece in cut_out(part, cut)]
    return tuple(left)


def cut_out(part: OffsetRange, cut: OffsetRange) -> list[OffsetRange]:
    """Return what is left of a range, in up to two pieces."""
    if part.lane != cut.lane or not len(part) or cut.end <= part.start or part.end <= cut.start:
        return [part]
    pieces = [replace(part, end=cut.start), replace(part, start=cut.end)]
    return [piece for piece in pieces if piece.end > piece.start]


def intersect_offset_ranges(part: OffsetRange, other: OffsetRange) -> OffsetRange | None:
    """Return what two ranges share, None for nothing."""
    start, end = max(part.start, other.start), min(part.end, other.end)
    return OffsetRange(part.lane, start, end) if part.lane == other.lane and start < end else None
