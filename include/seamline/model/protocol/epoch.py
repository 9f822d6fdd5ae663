"""One committed micro-batch, as the ledger records it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


class EpochKind(StrEnum):
    """Why an epoch exists: rows read, a range lost, rows admitted later, rows of files imported, or another cluster."""

    READ = "read"
    HOLE = "hole"
    AMEND = "amend"
    IMPORT = "import"
    FAILOVER = "failover"


@dataclass(frozen=True)
class Epoch:
    """One ledger row."""

    number: int
    """The number of the one attempt that was committed."""
    token: int
    """The writer's fencing token."""
    committed_at: datetime
    """When, by the writer's clock, UTC."""
    record_version: str
    """What its records mean."""
    kind: EpochKind = EpochKind.READ
    """Whether it read, passed over a hole, or filled one."""
    edge: bool = False
    """Whether a cut may fall on it."""
    ranges: tuple[OffsetRange, ...] = ()
    """What it read, the offsets that a hole passes over, or what of holes was filled; an empty one of a hole or a
    failover closes its lane."""
    accepted: Mapping[str, int] = field(default_factory=dict)
    """Accepted rows, by interval id."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refused records, by reason."""
    max_event_time: Mapping[Lane, datetime] = field(default_factory=dict)
    """The largest event time of each lane, of accepted rows."""
    watermark: datetime | None = None
    """The watermark from here on, None before the first."""
    frontiers: Mapping[str, int] = field(default_factory=dict)
    """W(v) by ``view/fingerprint``: ``number`` for every view that is not behind."""
    lookups: Mapping[str, str] = field(default_factory=dict)
    """The versions of pinned look-ups that its rows were made with, by name."""
    reason: str = ""
    """Who decided on a hole or declared the topic finite, and why."""
    bounds: Interval | None = None
    """The event times that a hole can have touched, None for any."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Accepted rows behind the watermark as the epoch began, by interval id."""
    very_late: Mapping[str, int] = field(default_factory=dict)
    """Those further behind than ``very_late``, which ``late`` does not count."""
    took: Mapping[str, float] = field(default_factory=dict)
    """Seconds of its phases, as far as known when the master's commit was made."""
    trigger: Mapping[str, float] = field(default_factory=dict)
    """What Spark said of the trigger before: seconds by its names, and rows per second."""
    before: int | None = None
    """The epoch before, NOTHING for the first; None in rows of releases that did not keep it."""
    astray: Mapping[Lane, int] = field(default_factory=dict)
    """Records that were refused for their event times, by lane."""
    clock: str = ""
    """The column, and how it is made, of event times and ``watermark``; empty in rows of earlier releases."""
    restated: int = 0
    """How many restatements joined rows are made with from here on (rule 22)."""

    until: datetime | None = None
    """Of an import that leaves rows to the topic by time alone: the event time from which on it does; else None."""
    begun: Mapping[Lane, int] = field(default_factory=dict)
    """Where the lanes of another cluster begin, in the place of those that are closed; empty but for a failover."""

    @property
    def rows(self) -> int:
        """Rows accepted, all intervals together."""
        return sum(self.accepted.values())

    def to_json(self) -> str:
        """Write the row as the JSON that the master's commit carries."""
        return json.dumps(
            {
                "number": self.number,
                "token": self.token,
                "committed_at": format_utc_instant(self.committed_at),
                "record_version": self.record_version,
                "kind": self.kind.value,
                "edge": self.edge,
                "ranges": [[str(r.lane), r.start, r.end] for r in self.ranges],
                "accepted": dict(self.accepted),
                "refused": dict(self.refused),
                "max_event_time": {
                    str(lane): format_utc_instant(at) for lane, at in self.max_event_time.items()
                },
                "watermark": format_utc_instant(self.watermark) if self.watermark else None,
                "frontiers": dict(self.frontiers),
                "lookups": dict(self.lookups),
                "reason": self.reason,
                "bounds": str(self.bounds) if self.bounds else None,
                "late": dict(self.late),
                "very_late": dict(self.very_late),
                **({"took": dict(self.took)} if self.took else {}),
                **({"trigger": dict(self.trigger)} if self.trigger else {}),
                **({} if self.before is None else {"before": self.before}),
                **(
                    {"astray": {str(lane): rows for lane, rows in self.astray.items()}} if self.astray else {}
                ),
                **({"clock": self.clock} if self.clock else {}),
                **({"restated": self.restated} if self.restated else {}),
                **({"until": format_utc_instant(self.until)} if self.until else {}),
                **({"begun": {str(lane): at for lane, at in self.begun.items()}} if self.begun else {}),
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Epoch:
        """Read what ``to_json`` wrote."""
        return cls.from_row(json.loads(text))

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Epoch:
        """Read the facts of what ``to_json`` wrote."""
        return Epoch(
            number=row["number"],
            token=row["token"],
            committed_at=parse_moment(row["committed_at"]),
            record_version=row["record_version"],
            kind=EpochKind(row["kind"]),
            edge=row["edge"],
            ranges=tuple(OffsetRange(Lane.parse(lane), start, end) for lane, start, end in row["ranges"]),
            accepted=row["accepted"],
            refused=row["refused"],
            max_event_time={Lane.parse(k): parse_moment(v) for k, v in row["max_event_time"].items()},
            watermark=parse_moment(row["watermark"]) if row["watermark"] else None,
            frontiers=row["frontiers"],
            lookups=row["lookups"],
            reason=row.get("reason", ""),
            bounds=Interval.parse(row["bounds"]) if row.get("bounds") else None,
            late=row.get("late", {}),
            very_late=row.get("very_late", {}),
            took=row.get("took", {}),
            trigger=row.get("trigger", {}),
            before=row.get("before"),
            astray={Lane.parse(lane): rows for lane, rows in row.get("astray", {}).items()},
            clock=row.get("clock", ""),
            restated=row.get("restated", 0),
            until=parse_moment(row["until"]) if row.get("until") else None,
            begun={Lane.parse(lane): at for lane, at in row.get("begun", {}).items()},
        )
