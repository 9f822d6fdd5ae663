"""What a stream's control table says: what the stream should be doing, who holds its lease, what people decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from seamline.model.errors import LeaseHeld
from seamline.model.protocol.clusters.failovers import Failover, find_unregistered
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import AcceptedGap
from seamline.model.protocol.imported.imports import Import
from seamline.model.protocol.moving import Moved
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.savepoint import Savepoint
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


class Desired(StrEnum):
    """What a stream should be doing: UNSET until someone says so, PAUSED with its driver up and reading nothing."""

    UNSET = "unset"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Lease:
    """Who may run the driver."""

    holder: str
    """Who it is, for people."""
    token: int
    """The fencing token: it fences everyone before."""
    process: str = ""
    """The holder's process, as ``own_process_name`` says; empty where it is not known."""
    beat: int = 0
    """Rises with each renewal."""
    renewed: datetime | None = None
    """The last renewal by the holder's own clock: shown to people, it decides nothing."""

    @property
    def mark(self) -> tuple[int, int]:
        """What is another after each renewal, and under each holder."""
        return self.token, self.beat

    def is_of(self, holder: str, process: str) -> bool:
        """Return whether a process has it; two containers may have the same host name and process id."""
        return (self.holder, self.process) == (holder, process)

    def refusal(self) -> LeaseHeld:
        """Say who has it, to whoever wants it."""
        said = f", renewed at {format_utc_instant(self.renewed)} by its clock" if self.renewed else ""
        return LeaseHeld(
            f"{self.holder} holds the lease with token {self.token}{said}.",
            hint="stop it, or wait for it to end.",
        )


@dataclass(frozen=True)
class Drained:
    """A declaration that a topic is finite (rule 12)."""

    ends: Mapping[Lane, int]
    """The end offset of each lane, after which no record comes."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""


@dataclass(frozen=True)
class AskDecision:
    """Let rows of some event times be asked about again, those that have no answer."""

    ask: str
    """The question's name."""
    span: Interval
    """The event times."""
    only_errors: bool
    """Whether only rows with a recorded error are meant; else also those that nobody asked about."""
    actor: str
    """Who decided it."""
    reason: str
    """Why."""
    at: datetime
    """When, UTC."""
    question: str = ""
    """The id of the question as it was asked then; empty for whichever is asked."""

    def __str__(self) -> str:
        which = "errors" if self.only_errors else "rows without an answer"
        return f"{self.ask}, {which} of {self.span}: {self.reason}"

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**vars(self), "span": str(self.span), "at": format_utc_instant(self.at)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AskDecision:
        """Read what ``to_row`` returned."""
        return cls(**{**row, "span": Interval.parse(row["span"]), "at": parse_moment(row["at"])})


@dataclass(frozen=True)
class Control:
    """The state of a stream's control table."""

    desired: Desired = Desired.UNSET
    """What the stream should be doing."""
    actor: str = ""
    """Who asked for that."""
    reason: str = ""
    """Why."""
    lease: Lease | None = None
    """Who runs the driver, None for nobody."""
    drained: Drained | None = None
    """The declaration that the topic is finite, None where there is none."""
    accepted: tuple[AcceptedGap, ...] = ()
    """Decisions to go on without gaps."""
    restated: tuple[Restatement, ...] = ()
    """Decisions about versions of look-ups."""
    restarts: int = 0
    """How often people have asked for a restart."""
    fills: tuple[OffsetRange, ...] = ()
    """Offsets that were passed over and are to be read after all."""
    savepoints: tuple[Savepoint, ...] = ()
    """Named positions, oldest first."""
    token: int = 0
    """The newest fencing token that was given out."""
    moved: Moved | None = None
    """Where the pipeline was moved, None where it is here."""
    asks: tuple[AskDecision, ...] = ()
    """Decisions to ask other systems again."""
    questions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The last epoch before each question to another system was asked, by its id, and how many decisions to ask again
    there were: rows and decisions up to there are none of its own."""
    imports: tuple[Import, ...] = ()
    """Decisions to import rows of files, oldest first; of those that are done some have been forgotten."""
    failovers: tuple[Failover, ...] = ()
    """Decisions to go on from another cluster, oldest first; a driver registers the last one as it starts."""

    def list_decided_gaps(self, ledger: Sequence[Epoch]) -> tuple[AcceptedGap, ...]:
        """List the gaps that somebody has decided on, also by a failover that no epoch of a ledger registers yet."""
        failover = find_unregistered(self.failovers, ledger)
        return (*self.accepted, *(failover.closings if failover else ()))

    def find_connection(self, declared: str) -> str:
        """Return the connection in force: that of the last failover, or the one that a definition has ``declared``."""
        return self.failovers[-1].connection if self.failovers and declared else declared

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
            **({"moved": self.moved.to_row()} if self.moved else {}),
            **({"asks": [each.to_row() for each in self.asks]} if self.asks else {}),
            **({"questions": dict(self.questions)} if self.questions else {}),
            **({"imports": [each.to_row() for each in self.imports]} if self.imports else {}),
            **({"failovers": [each.to_row() for each in self.failovers]} if self.failovers else {}),
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
            Moved.from_row(row["moved"]) if row.get("moved") else None,
            tuple(map(AskDecision.from_row, row.get("asks", []))),
            {id: (born[0], born[1]) for id, born in row.get("questions", {}).items()},
            tuple(map(Import.from_row, row.get("imports", []))),
            tuple(map(Failover.from_row, row.get("failovers", []))),
        )
