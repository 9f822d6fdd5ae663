"""Holes: offsets that Kafka can no longer give us, found by comparison and registered by a person (rule 13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.model.epoch import Epoch, Kind
from seamline.model.errors import OffsetGap, SeamlineError, TopicRecreated
from seamline.model.intervals import Interval
from seamline.model.offsets import Lane, OffsetRange, Vector


@dataclass(frozen=True, order=True)
class Gap:
    """Offsets ``[start, end)`` of a lane that were never read and are gone.

    With ``end`` None the lane itself is gone with its topic: nobody knows how much came after ``start``.
    """

    lane: Lane
    start: int
    end: int | None

    @property
    def range(self) -> OffsetRange:
        """Give what the register keeps; an empty range closes its lane."""
        return OffsetRange(self.lane, self.start, self.start if self.end is None else self.end)

    def __str__(self) -> str:
        what = "everything from" if self.end is None else "offsets"
        last = "" if self.end is None else f"..{self.end - 1}"
        return f"partition {self.lane.partition} of topic id {self.lane.topic_id}: {what} {self.start}{last}"


@dataclass(frozen=True)
class AcceptedGap:
    """A person's decision to go on without a gap; ``bounds`` are the event times it can have touched."""

    gap: Gap
    actor: str
    reason: str
    at: datetime
    bounds: Interval | None = None

    def epoch(self, number: int, token: int, now: datetime, last: Epoch) -> Epoch:
        """Give the epoch of kind hole that registers the gap; it is an edge and moves no watermark."""
        return Epoch(
            number=number,
            token=token,
            committed_at=now,
            record_version=last.record_version,
            kind=Kind.HOLE,
            edge=True,
            ranges=(self.gap.range,),
            watermark=last.watermark,
            reason=f"{self.actor}: {self.reason}",
            bounds=self.bounds,
        )


def positions(ledger: Iterable[Epoch]) -> dict[Lane, int]:
    """Give the end offset of every lane that was read, those closed by a hole left out."""
    ends: dict[Lane, int] = {}
    for epoch in ledger:
        for part in epoch.ranges:
            if epoch.kind is Kind.HOLE and not len(part):
                ends.pop(part.lane, None)
            else:
                ends[part.lane] = part.end
    return ends


def gaps(ledger: Iterable[Epoch], beginnings: Vector) -> tuple[Gap, ...]:
    """List what lies between the log as it was read and topics whose lanes begin at ``beginnings``."""
    found = []
    there = {lane.topic_id for lane in beginnings}
    for lane, end in sorted(positions(ledger).items()):
        if lane.topic_id not in there:
            found.append(Gap(lane, end, None))
        elif end < beginnings.get(lane, end):
            found.append(Gap(lane, end, beginnings[lane]))
    return tuple(found)


def undecided(found: Iterable[Gap], accepted: Iterable[AcceptedGap]) -> tuple[Gap, ...]:
    """Leave out the gaps that somebody has accepted, to the offset."""
    decided = {each.gap for each in accepted}
    return tuple(gap for gap in found if gap not in decided)


def refusal(pipeline: str, topics: Mapping[str, str], found: Sequence[Gap]) -> SeamlineError:
    """Say what is gone and what a person can do about it; ``topics`` are the ids by name."""
    listed = "; ".join(map(str, found))
    hint = (
        f"`seamline holes list {pipeline}` shows it; where it cannot be had back, "
        f"`seamline holes accept {pipeline} --reason ...` registers it and lets the stream go on."
    )
    if any(gap.end is None for gap in found):
        now = ", ".join(f"{name!r} with id {id}" for name, id in topics.items())
        return TopicRecreated(
            f"There is {now}: the topic that was read is no longer read, or was deleted and made again. "
            f"Not read: {listed}.",
            hint=hint,
        )
    names = ", ".join(map(repr, topics))
    return OffsetGap(f"Kafka has deleted records of {names} before they were read: {listed}.", hint=hint)


def holes(ledger: Iterable[Epoch]) -> list[Epoch]:
    """List the register: the epochs of kind hole."""
    return [epoch for epoch in ledger if epoch.kind is Kind.HOLE]


def touching(register: Collection[Epoch], interval: Interval) -> int:
    """Count the holes that an interval's rows may have been in: those without bounds touch every one."""
    return sum(hole.bounds is None or hole.bounds.meets(interval) for hole in register)
