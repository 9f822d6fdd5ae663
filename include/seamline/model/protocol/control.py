"""What a stream's control table says: what the stream should be doing, who holds its lease, what people decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from seamline.model.protocol.holes import AcceptedGap
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.savepoint import Savepoint


class Desired(StrEnum):
    """What a stream should be doing: UNSET until somebody says so, PAUSED with its driver up and reading nothing."""

    UNSET = "unset"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Lease:
    """Who may run the driver: ``token`` fences everyone before, ``beat`` rises with every renewal.

    ``process`` is the holder's, as ``own_process_name`` says; empty where that is not told. ``renewed`` is the
    last time by the holder's own clock: it is shown to people, and decides nothing.
    """

    holder: str
    token: int
    process: str = ""
    beat: int = 0
    renewed: datetime | None = None

    @property
    def mark(self) -> tuple[int, int]:
        """What is another after each renewal, and under each holder."""
        return self.token, self.beat


@dataclass(frozen=True)
class Drained:
    """A declaration that a topic is finite: no record comes after these end offsets (rule 12)."""

    ends: Mapping[Lane, int]
    actor: str
    reason: str


@dataclass(frozen=True)
class Control:
    """The state of a stream's control table.

    ``restarts`` counts how often people have asked for a restart. ``fills`` are offsets that were passed over and
    shall be read from Kafka after all. ``token`` is the newest that was given out; an earlier release gave out versions
    of the table.
    """

    desired: Desired = Desired.UNSET
    actor: str = ""
    reason: str = ""
    lease: Lease | None = None
    drained: Drained | None = None
    accepted: tuple[AcceptedGap, ...] = ()
    restated: tuple[Restatement, ...] = ()
    restarts: int = 0
    fills: tuple[OffsetRange, ...] = ()
    savepoints: tuple[Savepoint, ...] = ()
    token: int = 0

    def to_json(self) -> str:
        """Write the state as the JSON that a row carries; what a renewal changes of a lease is not in it."""
        lease, drained = self.lease, self.drained
        row = {
            "desired": self.desired.value,
            "actor": self.actor,
            "reason": self.reason,
            "lease": lease and {"holder": lease.holder, "token": lease.token, "process": lease.process},
            "drained": drained
            and {
                "ends": {str(lane): end for lane, end in drained.ends.items()},
                "actor": drained.actor,
                "reason": drained.reason,
            },
            "accepted": [each.to_row() for each in self.accepted],
            "restated": [each.to_row() for each in self.restated],
            "restarts": self.restarts,
            "fills": [[str(part.lane), part.start, part.end] for part in self.fills],
            "savepoints": [each.to_row() for each in self.savepoints],
            "token": self.token,
        }
        return json.dumps(row)

    @classmethod
    def from_json(cls, text: str) -> Control:
        """Read what ``to_json`` wrote; an earlier release knew fewer fields."""
        row = json.loads(text)
        lease, drained = row["lease"], row["drained"]
        return cls(
            Desired(row["desired"]),
            row["actor"],
            row["reason"],
            Lease(lease["holder"], lease["token"], lease.get("process", "")) if lease else None,
            Drained(
                {Lane.parse(lane): end for lane, end in drained["ends"].items()},
                drained["actor"],
                drained["reason"],
            )
            if drained
            else None,
            tuple(map(AcceptedGap.from_row, row["accepted"])),
            tuple(map(Restatement.from_row, row.get("restated", []))),
            row.get("restarts", 0),
            tuple(OffsetRange(Lane.parse(lane), start, end) for lane, start, end in row.get("fills", [])),
            tuple(map(Savepoint.from_row, row.get("savepoints", []))),
            row.get("token", 0),
        )
