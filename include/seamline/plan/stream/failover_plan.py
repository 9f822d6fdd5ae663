"""A failover planned: where each lane of the other cluster is begun, and what is stated of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NoReturn

from seamline.model.errors import BadRange, RecordsReplaced
from seamline.model.protocol.clusters.failovers import By
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import EPOCH, Interval, format_utc_instant

MARGIN = timedelta(minutes=5)


@dataclass(frozen=True)
class FailoverRequest:
    """What a person asks for."""

    connection: str
    """The Airflow connection of the other cluster."""
    by: By
    """How the places are found."""
    actor: str
    """Who asks."""
    reason: str
    """Why, in that person's words."""
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """For OFFSETS, the first offset to read of each topic and partition there."""
    margin: timedelta = MARGIN
    """How long before the last record that was read the other cluster is read from."""
    since: datetime | None = None
    """The instant, by Kafka's own time, from which all of it is read instead, but never from after the last record that
    was read; None for the margin."""
    whole: bool = False
    """Whether the person says that the other cluster has all that this one had."""
    lost: Interval | None = None
    """The event times of what it may lack; None for any."""
    fewer: bool = False
    """Whether a topic may have fewer partitions there."""


@dataclass(frozen=True)
class LeftLane:
    """A lane that is left."""

    topic: str
    """The topic's name; empty where the log has no record of it."""
    end: int
    """Where the log ends."""
    last: datetime | None
    """When its newest record was sent, by Kafka's own time; None where the log has none."""
    unread: int | None
    """How many offsets Kafka has above; None where it does not answer."""


@dataclass(frozen=True)
class OtherCluster:
    """The topics of the other cluster."""

    names: Mapping[str, str]
    """The topics by their ids."""
    beginnings: Vector
    """The first offset of each lane."""
    ends: Vector
    """The offset after its last."""
    read: Vector = field(default_factory=dict)
    """Where the log ends in those that were read before: who goes back finds lanes again."""

    def name(self, lane: Lane) -> str:
        """Name a lane as people do."""
        return f"{self.names[lane.topic_id]}/{lane.partition}"


@dataclass(frozen=True)
class ReadAgain:
    """What the log has of that which is read again."""

    accepted: int = 0
    """Accepted records, at most."""
    refused: int = 0
    """Refused records, at most."""
    span: Interval | None = None
    """The event times of the accepted ones; None for none."""
    reordered: tuple[str, ...] = ()
    """The topics whose records may stand in another order there."""


def require_partitions(left: Mapping[Lane, LeftLane], other: OtherCluster, *, fewer: bool) -> None:
    """Raise BadRange for a topic that has fewer partitions there."""
    if fewer:
        return
    for name in sorted({each.topic for each in left.values()} - {""}):
        had = 1 + max(lane.partition for lane, each in left.items() if each.topic == name)
        has = sum(other.names[lane.topic_id] == name for lane in other.ends)
        if has < had:
            raise BadRange(
                f"Topic {name!r} has {had} partitions, but {has} in the other cluster: a replica has as many.",
                hint="check connection and topic; pass --fewer-partitions if that is intended.",
            )


def find_instants(
    request: FailoverRequest, left: Mapping[Lane, LeftLane], other: OtherCluster
) -> dict[Lane, datetime | None]:
    """Find from which instant on each lane there is read; None for all of it.

    A partition goes on in that of its number. Where a topic has another number of partitions its records may be in any
    of them, and all are read from the least instant on. What comes after the last record that was read is read in any
    case: it was not read of the cluster that is left.
    """
    found: dict[Lane, datetime | None] = {}
    for id, name in other.names.items():
        lanes = [lane for lane in other.ends if lane.topic_id == id]
        olds = find_last_instants(name, left)
        known = [at for at in olds.values() if at]
        for lane in lanes:
            alike = len(lanes) == len(olds)
            at = olds.get(lane.partition) if alike else min(known, default=None)
            found[lane] = find_instant(request, at)
    return found


def find_last_instants(topic: str, left: Mapping[Lane, LeftLane]) -> dict[int, datetime | None]:
    """Find when the last record of each partition of a topic was sent.

    A partition of a topic whose name nobody knows may be one of this topic, unless this one's is known.
    """
    olds = {lane.partition: each.last for lane, each in left.items() if not each.topic}
    return olds | {lane.partition: each.last for lane, each in left.items() if each.topic == topic}


def find_instant(request: FailoverRequest, last: datetime | None) -> datetime | None:
    """Find from which instant on a lane is read whose last record was sent at one; None for all of it."""
    if request.since:
        return min(request.since, last or request.since)
    return last and last - min(request.margin, last - EPOCH)


def list_reordered_topics(left: Mapping[Lane, LeftLane], other: OtherCluster) -> tuple[str, ...]:
    """List the topics with another number of partitions there, where a partition's records may be in several."""
    numbers = {
        name: (sum(lane.topic_id == id for lane in other.ends), len(find_last_instants(name, left)))
        for id, name in other.names.items()
    }
    return tuple(name for name, (there, here) in sorted(numbers.items()) if here and there != here)


def find_read_again(
    instants: Mapping[Lane, datetime | None], left: Mapping[Lane, LeftLane], other: OtherCluster
) -> dict[Lane, datetime]:
    """Find from which instant on records of each lane that is left are given again."""
    found: dict[Lane, datetime] = {}
    for lane, each in left.items():
        of = {
            there.partition: at for there, at in instants.items() if other.names[there.topic_id] == each.topic
        }
        count = sum(1 for one in left.values() if one.topic == each.topic)
        if each.last is None or not (known := [at for at in of.values() if at]):
            continue
        at = of.get(lane.partition) if len(of) == count else min(known)
        if at:
            found[lane] = at
    return found


def place_by_offsets(request: FailoverRequest, other: OtherCluster) -> dict[Lane, int]:
    """Take the offsets that a person states, one for each partition there; BadRange."""
    lanes = {(other.names[lane.topic_id], lane.partition): lane for lane in other.ends}
    stated = {
        (topic or next(iter(other.names.values())), part): at for (topic, part), at in request.offsets.items()
    }
    for what, places in (
        ("There is no {} on the other cluster.", stated.keys() - lanes.keys()),
        ("The file names no offset of {}.", lanes.keys() - stated.keys()),
    ):
        if places:
            listed = ", ".join(f"{topic}/{part}" for topic, part in sorted(places))
            raise BadRange(
                what.format(listed),
                hint="name the first offset to read of every partition that the topics have there, and no other.",
            )
    for place, lane in lanes.items():
        low = max(other.beginnings[lane], other.read.get(lane, 0))
        if not low <= stated[place] <= other.ends[lane]:
            raise BadRange(
                f"{other.name(lane)}: {stated[place]} is not in {low}..{other.ends[lane]}, which can be read.",
                hint="offsets that were read before are not read again, and Kafka must have the others.",
            )
    return {lane: stated[place] for place, lane in lanes.items()}


def place_by_times(found: Mapping[Lane, int], other: OtherCluster) -> dict[Lane, int]:
    """Take the offsets that Kafka has found by time, but read nothing again of a lane that was read before."""
    for lane, end in other.read.items():
        if end > other.ends.get(lane, end):
            raise RecordsReplaced(
                f"{other.name(lane)} was read to {end} before, and ends at {other.ends[lane]} now.",
                hint="that cluster has lost records that were read, and will give their offsets to others: copy the "
                "topic into a new one of that name there.",
            )
    return {lane: max(at, other.read.get(lane, at)) for lane, at in sorted(found.items())}


def require_known_ids(again: ReadAgain, watermark: datetime | None, within: timedelta | None) -> None:
    """Raise BadRange unless all that is read again is known by its event id."""
    if within is None:
        raise BadRange(
            "Without event_id and dedup_within in the definition, records that are read again are not recognised.",
            hint="add both, or use --by offsets.json, or --by timestamp, which states what may count twice.",
        )
    horizon = watermark - within if watermark else None
    if again.span and horizon and again.span.start < horizon:
        raise BadRange(
            f"Records from {format_utc_instant(again.span.start)} on are read again, but event ids are only kept from "
            f"{format_utc_instant(horizon)} on.",
            hint="pass a smaller --margin, or a longer dedup_within; --by timestamp states what may count twice.",
        )


def refuse_same_cluster(pipeline: str, connection: str) -> NoReturn:
    """Raise BadRange for topics that are those that are read already, or of the same cluster."""
    raise BadRange(
        f"Connection {connection!r} leads to the cluster that is already read.",
        hint="another address or login of a cluster needs no failover: change the Airflow connection, or connection= "
        f"in the definition, and `seamline stream restart {pipeline}`. A topic that was created again is a hole: "
        f"`seamline holes list {pipeline}`.",
    )
