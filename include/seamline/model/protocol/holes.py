"""Holes: offsets that were not read, because Kafka lost them or a person passed over them (rule 13).

A hole is registered by a person's decision. What Kafka still has of it may be read later: epochs of kind amend
fill it, range by range, and move no lane's end. An import is a hole too until its rows are read: epochs of kind import
fill it, so that no interval it may touch is taken for complete before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from seamline.model.errors import OffsetGap
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.imported.table_rows import describe_row_span
from seamline.model.protocol.offsets import (
    Lane,
    OffsetRange,
    Vector,
    advance_vector,
    intersect_offset_ranges,
    subtract_offset_ranges,
)
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


@dataclass(frozen=True, order=True)
class Gap:
    """Offsets of a lane that were never read and are gone."""

    lane: Lane
    """The lane."""
    start: int
    """The first offset."""
    end: int | None
    """The exclusive end; None where the lane is gone with its topic, and nobody knows how much came."""

    @property
    def range(self) -> OffsetRange:
        """Return what the register keeps; an empty range closes its lane."""
        return OffsetRange(self.lane, self.start, self.start if self.end is None else self.end)

    def __str__(self) -> str:
        if self.lane.of_table and self.end is not None:
            return f"{self.lane.topic_id}: {describe_row_span(self.start, self.end)}"
        what = "everything from" if self.end is None else "offsets"
        last = "" if self.end is None else f"..{self.end - 1}"
        return f"partition {self.lane.partition} of topic id {self.lane.topic_id}: {what} {self.start}{last}"


@dataclass(frozen=True)
class AcceptedGap:
    """A person's decision to go on without a gap."""

    gap: Gap
    """The gap."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""
    at: datetime
    """When, UTC."""
    bounds: Interval | None = None
    """The event times that it can have touched, None for any."""

    def epoch(
        self, number: int, token: int, now: datetime, *, record_version: str, last: Epoch | None = None
    ) -> Epoch:
        """Return the epoch of kind hole that registers the gap; it is an edge and moves no watermark."""
        return Epoch(
            number=number,
            token=token,
            committed_at=now,
            record_version=last.record_version if last else record_version,
            kind=EpochKind.HOLE,
            edge=True,
            ranges=(self.gap.range,),
            watermark=last.watermark if last else None,
            reason=f"{self.actor}: {self.reason}",
            bounds=self.bounds,
            clock=last.clock if last else "",
        )

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        return {
            "lane": str(self.gap.lane),
            "start": self.gap.start,
            "end": self.gap.end,
            "actor": self.actor,
            "reason": self.reason,
            "at": format_utc_instant(self.at),
            "bounds": str(self.bounds) if self.bounds else None,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AcceptedGap:
        """Read what ``to_row`` wrote."""
        return cls(
            Gap(Lane.parse(row["lane"]), row["start"], row["end"]),
            row["actor"],
            row["reason"],
            parse_moment(row["at"]),
            Interval.parse(row["bounds"]) if row["bounds"] else None,
        )


CLOSING = (EpochKind.HOLE, EpochKind.FAILOVER)
"""Kinds of epochs whose empty ranges close lanes."""


def list_end_offsets(ledger: Iterable[Epoch]) -> dict[Lane, int]:
    """Return the end offset of every lane of Kafka's that was read, or that a failover begins; no closed ones."""
    ends: dict[Lane, int] = {}
    for epoch in ledger:
        for part in list_moving_ranges(epoch):
            if epoch.kind in CLOSING and not len(part):
                ends.pop(part.lane, None)
            else:
                ends[part.lane] = part.end
        ends |= epoch.begun
    return ends


def list_moving_ranges(epoch: Epoch) -> tuple[OffsetRange, ...]:
    """List the ranges by which an epoch moves the ends of Kafka's lanes; what fills a hole moves none."""
    if epoch.kind is EpochKind.AMEND:
        return ()
    return tuple(part for part in epoch.ranges if not part.lane.imported)


def list_filling_ranges(epoch: Epoch) -> tuple[OffsetRange, ...]:
    """List the ranges by which an epoch fills holes; a sum of epochs may read topics and imports."""
    match epoch.kind:
        case EpochKind.HOLE:
            return ()
        case EpochKind.AMEND:
            return epoch.ranges
    return tuple(part for part in epoch.ranges if part.lane.imported)


def list_closed_lanes(ledger: Iterable[Epoch]) -> set[Lane]:
    """List the lanes that ended with their topic, or were left for another cluster and not begun again."""
    closed: set[Lane] = set()
    for epoch in ledger:
        if epoch.kind in CLOSING:
            closed |= {part.lane for part in epoch.ranges if not len(part)}
        closed -= epoch.begun.keys()
    return closed


def find_gaps(ledger: Iterable[Epoch], beginnings: Vector) -> tuple[Gap, ...]:
    """List what lies between the log as it was read and topics whose lanes begin at ``beginnings``."""
    found = []
    there = {lane.topic_id for lane in beginnings}
    for lane, end in sorted(list_end_offsets(ledger).items()):
        if lane.topic_id not in there:
            found.append(Gap(lane, end, None))
        elif end < beginnings.get(lane, end):
            found.append(Gap(lane, end, beginnings[lane]))
    return tuple(found)


def list_undecided_gaps(found: Iterable[Gap], accepted: Iterable[AcceptedGap]) -> tuple[Gap, ...]:
    """Leave out the gaps that lie in one that someone has accepted."""
    decided = [each.gap for each in accepted]
    return tuple(gap for gap in found if not any(is_gap_covered(each, gap) for each in decided))


def is_gap_covered(decided: Gap, gap: Gap) -> bool:
    """Return whether every offset of a gap is in one that was decided on."""
    if decided.lane != gap.lane or decided.start > gap.start:
        return False
    if decided.end is None or gap.end is None:
        return decided == gap
    return gap.end <= decided.end


def to_register(
    ledger: Iterable[Epoch], accepted: Iterable[AcceptedGap], beginnings: Vector = MappingProxyType({})
) -> list[AcceptedGap]:
    """List the decisions that no hole records yet, each from where its lane is read to by now.

    A lane of which nothing was read is passed over from its beginning in Kafka on, as far as ``beginnings`` know it.

    The lowest is first: after a restore an older one may lie above what a newer one is about.

    A decision about offsets that were read in the meantime is over, and so is one about a lane that was closed.
    """
    known = list(ledger)
    ends, over = list_end_offsets(known), list_closed_lanes(known)
    waiting = []
    for each in sorted(accepted, key=lambda each: each.gap.start):
        lane, start, end = each.gap.lane, each.gap.start, each.gap.end
        if lane in over:
            continue
        at = ends.get(lane)
        if end is None:
            if at == start:
                waiting.append(each)
                over.add(lane)
        elif end > start and (start <= beginnings.get(lane, start) if at is None else start <= at < end):
            waiting.append(replace(each, gap=Gap(lane, start if at is None else at, end)))
            ends[lane] = end
    return waiting


def keep_hole_epochs(ledger: Iterable[Epoch]) -> list[Epoch]:
    """Keep the epochs that show which offsets of the holes are missing."""
    return [epoch for epoch in ledger if epoch.kind is EpochKind.HOLE or list_filling_ranges(epoch)]


def list_open_holes(ledger: Iterable[Epoch]) -> list[Epoch]:
    """List the register: the epochs of kind hole that are not filled by now."""
    known = list(ledger)
    lacking = list_missing_ranges(known)
    return [epoch for epoch in known if epoch.number in lacking]


def list_missing_ranges(ledger: Iterable[Epoch]) -> dict[int, tuple[OffsetRange, ...]]:
    """Return what is still missing of each hole, by its number; of a lane that ended with its topic the empty range."""
    missing: dict[int, tuple[OffsetRange, ...]] = {}
    for epoch in ledger:
        if epoch.kind is EpochKind.HOLE:
            missing[epoch.number] = epoch.ranges
        elif filled := list_filling_ranges(epoch):
            missing = {number: subtract_offset_ranges(parts, filled) for number, parts in missing.items()}
    return {number: parts for number, parts in missing.items() if parts}


def list_fillable_ranges(
    ledger: Iterable[Epoch], asked: Iterable[OffsetRange], beginnings: Vector
) -> list[OffsetRange]:
    """List what was asked to be filled, is still missing, and Kafka still has: from ``beginnings`` on."""
    missing = [
        part for parts in list_missing_ranges(ledger).values() for part in parts if part.lane in beginnings
    ]
    there = [OffsetRange(part.lane, beginnings[part.lane], part.end) for part in missing]
    had = [
        both
        for part, kept in zip(missing, there, strict=True)
        if (both := intersect_offset_ranges(part, kept))
    ]
    return sorted(
        {both for part in had for wanted in asked if (both := intersect_offset_ranges(part, wanted))}
    )


def is_ledger_contiguous(ledger: Iterable[Epoch]) -> bool:
    """Return whether each range starts where its lane ends, and what amends it was in a hole and in no other amend."""
    ends: dict[Lane, int] = {}
    open_: tuple[OffsetRange, ...] = ()
    for epoch in ledger:
        if filled := list_filling_ranges(epoch):
            left = subtract_offset_ranges(open_, filled)
            if sum(map(len, open_)) - sum(map(len, left)) != sum(map(len, filled)):
                return False
            open_ = left
        try:
            ends = {**advance_vector(ends, list_moving_ranges(epoch)), **epoch.begun}
        except OffsetGap:
            return False
        if epoch.kind is EpochKind.HOLE:
            open_ = (*open_, *epoch.ranges)
    return True


def count_hole_offsets(ledger: Iterable[Epoch]) -> dict[Interval | None, int]:
    """Count the offsets that holes still miss, by the event times that a hole can have touched, None for any."""
    known = list(ledger)
    bounds = {epoch.number: epoch.bounds for epoch in known}
    found: dict[Interval | None, int] = {}
    for number, parts in list_missing_ranges(known).items():
        found[bounds[number]] = found.get(bounds[number], 0) + sum(map(len, parts))
    return found


def count_touching_holes(register: Collection[Epoch], interval: Interval) -> int:
    """Count the holes that an interval's rows may have been in: those without bounds touch every one."""
    return sum(hole.bounds is None or hole.bounds.overlaps(interval) for hole in register)
