"""A failover in words, before anybody has decided on it."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.model.protocol.clusters.failovers import Failover
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.failover_plan import LeftLane, OtherCluster


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
