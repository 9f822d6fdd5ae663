"""A failover planned: where each lane of the other cluster is begun, and what is stated of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NoReturn

from seamline.model.errors import BadRange, RecordsReplaced
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import Interval, format_utc_instant

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
    """The instant, by Kafka's own time, from which all of it is read instead; None for the margin."""
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


@dataclass(frozen=True)
class Doubt:
    """What of the log may not be right."""

    doubtful: bool
    """Whether anything is."""
    bounds: Interval | None
    """The event times; None for any."""
    said: str
    """In words."""


def require_partitions(left: Mapping[Lane, LeftLane], other: OtherCluster, *, fewer: bool) -> None:
    """Raise BadRange for a topic that has fewer partitions there."""
    if fewer:
        return
    for name in sorted({each.topic for each in left.values()} - {""}):
        had = 1 + max(lane.partition for lane, each in left.items() if each.topic == name)
        has = sum(other.names[lane.topic_id] == name for lane in other.ends)
        if has < had:
            raise BadRange(
                f"Topic {name!r} has {had} partitions, and {has} there: a replica has no fewer.",
                hint="check connection and topic; pass --fewer-partitions where that is so on purpose.",
            )


def find_instants(
    request: FailoverRequest, left: Mapping[Lane, LeftLane], other: OtherCluster
) -> dict[Lane, datetime | None]:
    """Find from which instant on each lane there is read; None for all of it.

    A partition goes on in that of its number. Where a topic has another number of partitions its records may be in any
    of them, and all are read from the least instant on.
    """
    found: dict[Lane, datetime | None] = {}
    for id, name in other.names.items():
        lanes = [lane for lane in other.ends if lane.topic_id == id]
        olds = {lane.partition: each.last for lane, each in left.items() if each.topic in (name, "")}
        known = [at for at in olds.values() if at]
        for lane in lanes:
            alike = len(lanes) == len(olds)
            at = olds.get(lane.partition) if alike else min(known, default=None)
            found[lane] = request.since or (at and at - request.margin)
    return found


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
                hint="name the first offset to read of every partition of every topic there, and of no other.",
            )
    for place, lane in lanes.items():
        low = max(other.beginnings[lane], other.read.get(lane, 0))
        if not low <= stated[place] <= other.ends[lane]:
            raise BadRange(
                f"{other.name(lane)}: {stated[place]} is not in {low}..{other.ends[lane]}, which can be read there.",
                hint="what was read of a partition is not read again, and what Kafka does not have cannot be.",
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
            "The definition has no event_id with dedup_within by which a record is known that is read again.",
            hint="add both, or use --by offsets.json, or --by timestamp, which states what may count twice.",
        )
    horizon = watermark - within if watermark else None
    if again.span and horizon and again.span.start < horizon:
        raise BadRange(
            f"Records from {format_utc_instant(again.span.start)} on are read again, but event ids are known from "
            f"{format_utc_instant(horizon)} on.",
            hint="pass a smaller --margin, or a longer dedup_within; --by timestamp states what may count twice.",
        )


def find_doubt(request: FailoverRequest, left: Iterable[LeftLane], again: ReadAgain) -> Doubt:
    """Find what may be missing and what may count twice, and of which event times."""
    unread = [each.unread for each in left]
    sure = bool(unread) and all(count == 0 for count in unread)
    twice = again.span if request.by is By.TIMESTAMP else None
    said = [describe_overlap(request, again)]
    if sure:
        said.append("nothing is missing: all that the cluster that is left has was read")
    elif request.whole:
        said.append(f"nothing is missing, says {request.actor}")
    else:
        known = [count for count in unread if count is not None]
        many = f"{sum(known)} offsets" if len(known) == len(unread) else "an unknown number of records"
        said.append(f"missing is what the other cluster lacks of {many} that were not read")
    missing = not sure and not request.whole
    if missing and request.lost is None:
        return Doubt(True, None, "; ".join(said))
    spans = [span for span in (request.lost if missing else None, twice) if span]
    if not spans:
        return Doubt(False, None, "; ".join(said))
    bounds = Interval(min(span.start for span in spans), max(span.end for span in spans))
    return Doubt(True, bounds, "; ".join(said))


def describe_overlap(request: FailoverRequest, again: ReadAgain) -> str:
    """Say what is read again, and what becomes of it."""
    if request.by is By.OFFSETS:
        return "each partition goes on at the offset that was stated for it"
    if not again.accepted and not again.refused:
        return "no record is read again"
    of = ""
    if again.span:
        of = f" with event times from {format_utc_instant(again.span.start)} to {format_utc_instant(again.span.end)}"
    count = f"up to {again.accepted} accepted and {again.refused} refused records are read again{of}"
    if request.by is By.EVENT_ID:
        return f"{count}, and known by their event ids"
    return f"{count}, and may count twice"


def make_failover(
    request: FailoverRequest,
    from_connection: str,
    left: Mapping[Lane, LeftLane],
    begun: Vector,
    doubt: Doubt,
    at: datetime,
) -> Failover:
    """Make the decision."""
    return Failover(
        connection=request.connection,
        left=from_connection,
        by=request.by,
        closed={lane: each.end for lane, each in sorted(left.items())},
        begun=dict(sorted(begun.items())),
        doubtful=doubt.doubtful,
        bounds=doubt.bounds,
        statement=doubt.said,
        actor=request.actor,
        reason=request.reason,
        at=at,
    )


def describe_failover(failover: Failover, left: Mapping[Lane, LeftLane], other: OtherCluster) -> list[str]:
    """Describe a failover, a line for each lane that is left and each that is begun, then what is stated."""
    lines = [
        f"left: {each.topic or lane.topic_id}/{lane.partition} on {failover.left}, read to {each.end}; "
        + ("what was not read is unknown" if each.unread is None else f"{each.unread} offsets were not read")
        for lane, each in sorted(left.items(), key=lambda item: (item[1].topic, item[0].partition))
    ]
    lines += [
        f"begun: {other.name(lane)} on {failover.connection}, read from {at}; Kafka has "
        f"{other.beginnings[lane]} to {other.ends[lane]}"
        for lane, at in sorted(failover.begun.items(), key=lambda item: other.name(item[0]))
    ]
    if not failover.doubtful:
        return [*lines, f"stated: {failover.statement}"]
    where = "no interval is certified; --lost-from and --lost-to bound that"
    if failover.bounds:
        where = f"intervals that touch {failover.bounds} are not certified"
    return [*lines, f"stated: {failover.statement}", f"a hole in the log: {where}"]


def refuse_same_cluster(pipeline: str, connection: str) -> NoReturn:
    """Raise BadRange for topics that are those that are read already, or of the same cluster."""
    raise BadRange(
        f"Connection {connection!r} leads to the cluster that is read already.",
        hint="another address or login of a cluster needs no failover: change the Airflow connection, or connection= "
        f"in the definition, and `seamline stream restart {pipeline}`. A topic that was made again there is a hole: "
        f"`seamline holes list {pipeline}`.",
    )
