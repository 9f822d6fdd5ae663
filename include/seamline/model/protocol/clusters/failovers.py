"""Failovers: decisions to read the same topics on from another cluster, where records have other offsets (rule 30)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from seamline.model.errors import OutOfStep
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import AcceptedGap, Gap, list_end_offsets
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


class By(StrEnum):
    """How the place is found from which the other cluster is read.

    OFFSETS: a person states it. EVENT_ID: some time before the last record that was read; what was read already is
    known by its event id. TIMESTAMP: the same, and what was read already may count twice.
    """

    OFFSETS = "offsets"
    EVENT_ID = "event_id"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Failover:
    """A person's decision to go on from another cluster."""

    connection: str
    """The Airflow connection of that cluster, in force from here on."""
    left: str
    """The connection that was in force before."""
    by: By
    """How ``begun`` was found."""
    closed: Vector
    """Where the log ends in each lane that is left: the decision is about this place and no other."""
    begun: Vector
    """The first offset to read of each lane of the other cluster."""
    doubtful: bool
    """Whether records may be missing or count twice: then it is a hole in the log as well."""
    bounds: Interval | None
    """The event times that such records can have; None for any."""
    statement: str
    """What is known of them, in words."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""
    at: datetime
    """When, UTC."""

    def __str__(self) -> str:
        return f"from {self.left} to {self.connection} by {self.by}: {self.statement}"

    @property
    def closings(self) -> tuple[AcceptedGap, ...]:
        """Return the lanes that end, as gaps that somebody has decided on."""
        return tuple(
            AcceptedGap(Gap(lane, end, None), self.actor, self.reason, self.at, self.bounds)
            for lane, end in sorted(self.closed.items())
        )

    def epoch(
        self, number: int, token: int, now: datetime, *, record_version: str, last: Epoch | None
    ) -> Epoch:
        """Return the one epoch that closes the lanes that are left and begins the others; it is an edge."""
        return Epoch(
            number=number,
            token=token,
            committed_at=now,
            record_version=last.record_version if last else record_version,
            kind=EpochKind.HOLE if self.doubtful else EpochKind.FAILOVER,
            edge=True,
            ranges=tuple(OffsetRange(lane, end, end) for lane, end in sorted(self.closed.items())),
            watermark=last.watermark if last else None,
            reason=f"{self.actor}: {self.reason}; {self}",
            bounds=self.bounds if self.doubtful else None,
            clock=last.clock if last else "",
            begun=self.begun,
        )

    def is_registered_by(self, epoch: Epoch) -> bool:
        """Return whether an epoch is the one that registers it."""
        return epoch.begun == self.begun and {part.lane: part.end for part in epoch.ranges} == self.closed

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        return {
            **vars(self),
            "by": self.by.value,
            "closed": {str(lane): end for lane, end in self.closed.items()},
            "begun": {str(lane): start for lane, start in self.begun.items()},
            "bounds": str(self.bounds) if self.bounds else None,
            "at": format_utc_instant(self.at),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Failover:
        """Read what ``to_row`` wrote."""
        facts = {
            "by": By(row["by"]),
            "closed": {Lane.parse(lane): end for lane, end in row["closed"].items()},
            "begun": {Lane.parse(lane): start for lane, start in row["begun"].items()},
            "bounds": Interval.parse(row["bounds"]) if row["bounds"] else None,
            "at": parse_moment(row["at"]),
        }
        return cls(**{**row, **facts})


def list_kafka_ends(ledger: Iterable[Epoch]) -> dict[Lane, int]:
    """Return where the log ends in each lane of a topic that is read: a failover is about all of them at once."""
    return {lane: end for lane, end in list_end_offsets(ledger).items() if not lane.of_table}


def find_unregistered(failovers: Sequence[Failover], ledger: Sequence[Epoch]) -> Failover | None:
    """Find the failover that no epoch registers yet; only the newest decision can be one.

    It is compared with the newest failover of the log alone: who goes there and back may decide the same once more.
    """
    if not failovers:
        return None
    made = next((epoch for epoch in reversed(ledger) if epoch.begun), None)
    return None if made and failovers[-1].is_registered_by(made) else failovers[-1]


def list_registered(failovers: Sequence[Failover], ledger: Sequence[Epoch]) -> tuple[Failover, ...]:
    """List the decisions without one that no epoch registers yet."""
    return tuple(failovers) if find_unregistered(failovers, ledger) is None else tuple(failovers[:-1])


def require_fitting(
    pipeline: str, failover: Failover, ledger: Iterable[Epoch], topic_ids: Collection[str]
) -> None:
    """Raise OutOfStep unless the log ends where the decision says, and the topics are those that it names.

    A driver that everybody took for dead may have gone on reading the cluster that is left.
    """
    held = list_kafka_ends(ledger)
    moved = [
        f"{lane} was to be left at {failover.closed.get(lane, 'no offset')} and is read to {held.get(lane, 'none')}"
        for lane in sorted({*held, *failover.closed})
        if held.get(lane) != failover.closed.get(lane)
    ]
    gone = sorted({lane.topic_id for lane in failover.begun} - {*topic_ids})
    moved += [f"topic id {id} is not among those of connection {failover.connection!r}" for id in gone]
    if moved:
        raise OutOfStep(
            f"The failover to {failover.connection!r} was decided for another state of the log: {'; '.join(moved)}.",
            hint=f"run `seamline stream failover {pipeline}` again, which decides for the present state, or "
            f"`seamline stream failover {pipeline} --cancel`.",
        )
