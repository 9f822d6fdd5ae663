"""What is stated of a failover: what may be missing, what may count twice, and of which event times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.plan.stream.failover_plan import FailoverRequest, LeftLane, ReadAgain


@dataclass(frozen=True)
class Doubt:
    """What of the log may not be right."""

    doubtful: bool
    """Whether anything is."""
    bounds: Interval | None
    """The event times; None for any."""
    said: str
    """In words."""


def find_doubt(request: FailoverRequest, left: Iterable[LeftLane], again: ReadAgain) -> Doubt:
    """Find what may be missing and what may count twice, and of which event times."""
    unread = [each.unread for each in left]
    sure = bool(unread) and all(count == 0 for count in unread)
    twice = again.span if request.by is By.TIMESTAMP else None
    said = [describe_overlap(request, again)]
    if sure:
        said.append("nothing is missing: all records of the old cluster were read")
    elif request.whole:
        said.append(f"nothing is missing, as {request.actor} declares")
    else:
        known = [count for count in unread if count is not None]
        many = f"{sum(known)} offsets" if len(known) == len(unread) else "an unknown number of offsets"
        said.append(f"{many} were not read: records of them that the other cluster lacks are missing")
    missing = not sure and not request.whole
    if missing and request.lost is None:
        return Doubt(True, None, "; ".join(said))
    spans = [span for span in (request.lost if missing else None, twice) if span]
    if not spans:
        return Doubt(False, None, "; ".join(said))
    bounds = Interval(min(span.start for span in spans), max(span.end for span in spans))
    return Doubt(True, bounds, "; ".join(said))


def describe_overlap(request: FailoverRequest, again: ReadAgain) -> str:
    """Say what is read again, what becomes of it, and where no more than a guess is possible."""
    if request.by is By.OFFSETS:
        return "each partition continues at the offset that was stated for it"
    said = describe_known_overlap(request, again)
    if not again.reordered:
        return said
    return (
        f"{said}; {', '.join(again.reordered)} has another number of partitions there than the log: if its records "
        "have another order there, older ones are read again too, and unread ones of before that instant are not read"
    )


def describe_known_overlap(request: FailoverRequest, again: ReadAgain) -> str:
    """Say what is read again of topics whose records stand in the same order there."""
    if not again.accepted and not again.refused:
        return "no record is read again"
    of = ""
    if again.span:
        of = f" with event times from {format_utc_instant(again.span.start)} to {format_utc_instant(again.span.end)}"
    count = f"up to {again.accepted} accepted and {again.refused} refused records are read again{of}"
    if request.by is By.EVENT_ID:
        return f"{count}, and recognised by their event ids"
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
