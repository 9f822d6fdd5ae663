"""The control table: what a stream should be doing, who holds its lease, and what people have decided.

Every commit carries the whole state, so the newest commit is all a reader needs; what people ask for is a
row as well, with actor, reason and time.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import pyarrow as pa

from seamline.lake import durability, files
from seamline.lake.layout import Layout
from seamline.lake.pins import look
from seamline.lake.tables import Table
from seamline.lake.types import INSTANT
from seamline.model.errors import Conflict, LeaseHeld
from seamline.model.holes import AcceptedGap
from seamline.model.intervals import parse_moment, stamp
from seamline.model.offsets import Lane, OffsetRange
from seamline.model.restated import Restatement
from seamline.model.savepoint import Savepoint, with_one_more

APP = "seamline.control"
STATE = "seamline.control"
TTL = timedelta(seconds=15)
SCHEMA = pa.schema([("state", pa.string()), ("actor", pa.string()), ("reason", pa.string()), ("at", INSTANT)])


class Desired(StrEnum):
    """What a stream should be doing: UNSET until somebody says so, PAUSED with its driver up and reading nothing."""

    UNSET = "unset"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Lease:
    """Who may run the driver, until when; ``token`` fences everyone before."""

    holder: str
    token: int
    until: datetime


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
    shall be read from Kafka after all.
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

    def to_json(self) -> str:
        """Write the state as the JSON that a commit carries."""
        lease, drained = self.lease, self.drained
        row = {
            "desired": self.desired.value,
            "actor": self.actor,
            "reason": self.reason,
            "lease": lease and {"holder": lease.holder, "token": lease.token, "until": stamp(lease.until)},
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
            Lease(lease["holder"], lease["token"], parse_moment(lease["until"])) if lease else None,
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
        )


class ControlTable:
    """Conditional changes to the desired state and the lease."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> ControlTable:
        """Open the control table, made if it is not there."""
        settings = {"delta.logRetentionDuration": "interval 1 hours"}
        return cls(Table.ensure(layout.table("control"), SCHEMA, settings=settings))

    def read(self) -> Control:
        """Give the state at the newest version."""
        found = self.table.refresh().metadata().get(STATE)
        return Control() if found is None else Control.from_json(found)

    def want(self, desired: Desired, *, actor: str, reason: str, now: datetime) -> None:
        """Set the desired state."""
        row = {"state": desired.value, "actor": actor, "reason": reason, "at": now}
        self._decide(row, lambda found: replace(found, desired=desired, actor=actor, reason=reason))

    def restart(self, *, actor: str, reason: str, now: datetime) -> None:
        """Ask for the driver to be started anew, and want the stream to run."""
        row = {"state": "restart", "actor": actor, "reason": reason, "at": now}

        def change(found: Control) -> Control:
            again = replace(found, desired=Desired.RUNNING, restarts=found.restarts + 1)
            return replace(again, actor=actor, reason=reason)

        self._decide(row, change)

    def fill(self, parts: Iterable[OffsetRange], *, actor: str, reason: str, now: datetime) -> None:
        """Ask for offsets that were passed over to be read."""
        more = tuple(parts)
        row = {"state": "fill", "actor": actor, "reason": reason, "at": now}
        self._decide(row, lambda found: replace(found, fills=(*found.fills, *more)))

    def save(self, savepoint: Savepoint) -> None:
        """Name a position; BadRange where the name is taken."""
        row = {"state": "savepoint", "actor": savepoint.actor, "reason": str(savepoint), "at": savepoint.at}
        self._decide(row, lambda found: replace(found, savepoints=with_one_more(found.savepoints, savepoint)))

    def declare_drained(self, drained: Drained, *, now: datetime) -> None:
        """Declare that the topic is finite."""
        row = {"state": "drained", "actor": drained.actor, "reason": drained.reason, "at": now}
        self._decide(row, lambda found: replace(found, drained=drained))

    def accept(self, gaps: Iterable[AcceptedGap]) -> None:
        """Let the stream go on without what is gone; a supervisor that waits or has given up tries again at once."""
        more = tuple(gaps)
        row = {
            "state": "hole accepted",
            "actor": more[0].actor,
            "reason": f"{'; '.join(str(each.gap) for each in more)}: {more[0].reason}",
            "at": more[0].at,
        }
        self._decide(
            row,
            lambda found: replace(found, accepted=(*found.accepted, *more), restarts=found.restarts + 1),
        )

    def pass_over(
        self,
        gaps: Iterable[AcceptedGap],
        *,
        void: Iterable[AcceptedGap],
        fill: bool,
        actor: str,
        reason: str,
        now: datetime,
    ) -> None:
        """Begin elsewhere: accept gaps, in the place of decisions that are void by it; with ``fill`` read them too."""
        more, gone = tuple(gaps), tuple(void)
        told = "; ".join(str(each.gap) for each in more) or "nothing"
        row = {"state": "passed over", "actor": actor, "reason": f"{told}: {reason}", "at": now}
        fills = tuple(each.gap.range for each in more) if fill else ()

        def change(found: Control) -> Control:
            kept = tuple(each for each in found.accepted if each not in gone)
            return replace(found, accepted=(*kept, *more), fills=(*found.fills, *fills))

        self._decide(row, change)

    def restate(self, decision: Restatement) -> None:
        """Let builds take rows of some intervals as another version of a look-up has them."""
        row = {
            "state": "restated",
            "actor": decision.actor,
            "reason": f"{decision.lookup} {decision.version} in {decision.span}: {decision.reason}",
            "at": decision.at,
        }
        self._decide(row, lambda found: replace(found, restated=(*found.restated, decision)))

    def _decide(self, row: Mapping[str, object], change: Callable[[Control], Control]) -> None:
        """Write a decision, whoever else is renewing a lease meanwhile; the log that it may be about is on disk."""
        durability.sync_disk(self.table.root)
        rows = pa.Table.from_pylist([dict(row)], schema=SCHEMA)
        file = files.write(rows, self.table.root, f"{uuid.uuid4().hex}.parquet", stats=[])
        while True:
            try:
                return self._write(change(self.read()), [file])
            except Conflict:
                continue

    def take(self, holder: str, *, now: datetime) -> Lease:
        """Take the lease; LeaseHeld while another holder's has not run out."""
        current = self.read()
        held = current.lease
        if held and held.holder != holder and held.until > now:
            raise LeaseHeld(
                f"{held.holder} holds the lease until {stamp(held.until)}.",
                hint="stop it, or wait for it to end.",
            )
        lease = Lease(holder, self.table.version + 1, now + TTL)
        try:
            self._write(replace(current, lease=lease), [])
        except Conflict:
            raise LeaseHeld("Another supervisor took the lease first.", hint="nothing to do.") from None
        return lease

    def renew(self, lease: Lease, *, now: datetime) -> Lease:
        """Prolong one's own lease; LeaseHeld once another has it."""
        while True:
            current = self.read()
            if current.lease is None or current.lease.token != lease.token:
                holder = current.lease.holder if current.lease else "nobody"
                raise LeaseHeld(f"The lease with token {lease.token} is {holder}'s now.", hint="exit.")
            renewed = replace(lease, until=now + TTL)
            try:
                self._write(replace(current, lease=renewed), [], sync=False)
            except Conflict:
                continue
            return renewed

    def release(self, lease: Lease) -> None:
        """Give one's own lease back; nothing happens if another has it."""
        while (current := self.read()).lease is not None and current.lease.token == lease.token:
            try:
                return self._write(replace(current, lease=None), [])
            except Conflict:
                continue

    def _write(self, state: Control, written: list[files.DataFile], *, sync: bool | None = None) -> None:
        txns = {APP: self.table.version + 1}
        self.table.append(written, txns=txns, metadata={STATE: state.to_json()}, sync=sync)


def restatements(layout: Layout) -> tuple[Restatement, ...]:
    """List the restatements of a pipeline in the order of their decisions."""
    found = look(layout.table("control"), "restated", lambda table: ControlTable(table).read().restated)
    return found or ()
