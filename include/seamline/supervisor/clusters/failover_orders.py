"""A failover as people ask for it: in the words of a command, of a form or of a request; read in one place."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from seamline.model.errors import BadRange
from seamline.model.protocol.clusters.failovers import By
from seamline.model.time.intervals import Interval, parse_duration, parse_moment
from seamline.plan.stream.failover_plan import FailoverRequest
from seamline.plan.stream.start_positions import parse_spark_offsets


class FailoverAction(StrEnum):
    """What is asked for."""

    PLAN = "plan-failover"
    """To say what a failover would be."""
    DECIDE = "failover"
    """To decide on it."""
    CANCEL = "cancel-failover"
    """To take back one that no start has registered."""


@dataclass(frozen=True)
class FailoverOrder:
    """What someone wants done about the cluster that a stream reads, and why; the words are not read yet."""

    action: FailoverAction
    """What is asked for."""
    actor: str
    """Who asks."""
    reason: str = ""
    """Why, in that person's words."""
    connection: str = ""
    """The Airflow connection of the other cluster."""
    by: str = ""
    """How the places are found: offsets, event_id or timestamp."""
    offsets: str = ""
    """In JSON the first offset to read of each topic and partition there."""
    margin: str = "5 minutes"
    """How long before the last record that was read the other cluster is read from."""
    since: str | None = None
    """The instant from which it is read instead; None for the margin."""
    lost_from: str | None = None
    """The first event time of what it may lack; None for any."""
    lost_to: str | None = None
    """The end of these, exclusive."""
    nothing_missing: bool = False
    """Whether the person says that the other cluster has all that this one had."""
    fewer_partitions: bool = False
    """Whether a topic may have fewer partitions there."""

    def to_json(self) -> str:
        """Write the order for another process, the inverse of ``from_json``."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> FailoverOrder:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        return cls(**{**row, "action": FailoverAction(row["action"])})

    def read(self) -> FailoverRequest:
        """Read the words of a plan or a decision; BadRange says which is wrong."""
        if not self.connection:
            raise BadRange(
                "connection: a failover needs one.", hint="name the Airflow connection of the other cluster."
            )
        if self.by not in [each.value for each in By]:
            raise BadRange(f"by: {self.by!r} is no way to continue.", hint=f"available: {', '.join(By)}.")
        if (self.lost_from is None) != (self.lost_to is None):
            raise BadRange("--lost-from and --lost-to belong together.", hint="pass both, or neither.")
        way, offsets = By(self.by), {}
        if way is By.OFFSETS:
            if self.since is not None:
                raise BadRange(
                    "--since belongs to the other ways.", hint="the file says where reading begins."
                )
            offsets = parse_spark_offsets(self.offsets)
        lost = None
        if self.lost_from is not None and self.lost_to is not None:
            lost = Interval(parse_moment(self.lost_from), parse_moment(self.lost_to))
        return FailoverRequest(
            connection=self.connection,
            by=way,
            actor=self.actor,
            reason=self.reason,
            offsets=offsets,
            margin=parse_duration(self.margin),
            since=parse_moment(self.since) if self.since is not None else None,
            whole=self.nothing_missing,
            lost=lost,
            fewer=self.fewer_partitions,
        )
