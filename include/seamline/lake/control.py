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

from seamline.lake import files
from seamline.lake.layout import Layout
from seamline.lake.pins import look
from seamline.lake.tables import Table
from seamline.lake.types import INSTANT
from seamline.model.errors import Conflict, LeaseHeld
from seamline.model.holes import AcceptedGap, Gap
from seamline.model.intervals import Interval, parse_moment, stamp
from seamline.model.offsets import Lane
from seamline.model.restated import Restatement

APP = "seamline.control"
STATE = "seamline.control"
TTL = timedelta(seconds=15)
SCHEMA = pa.schema([("state", pa.string()), ("actor", pa.string()), ("reason", pa.string()), ("at", INSTANT)])


class Desired(StrEnum):
    """What a stream should be doing; UNSET until somebody first says so."""

    UNSET = "unset"
    RUNNING = "running"
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
    """The state of a stream's control table."""

    desired: Desired = Desired.UNSET
    actor: str = ""
    reason: str = ""
    lease: Lease | None = None
    drained: Drained | None = None
    accepted: tuple[AcceptedGap, ...] = ()
    restated: tuple[Restatement, ...] = ()

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
            "accepted": [
                {
                    "lane": str(each.gap.lane),
                    "start": each.gap.start,
                    "end": each.gap.end,
                    "actor": each.actor,
                    "reason": each.reason,
                    "at": stamp(each.at),
                    "bounds": str(each.bounds) if each.bounds else None,
                }
                for each in self.accepted
            ],
            "restated": [each.to_row() for each in self.restated],
        }
        return json.dumps(row)

    @classmethod
    def from_json(cls, text: str) -> Control:
        """Read what ``to_json`` wrote."""
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
            tuple(
                AcceptedGap(
                    Gap(Lane.parse(each["lane"]), each["start"], each["end"]),
                    each["actor"],
                    each["reason"],
                    parse_moment(each["at"]),
                    Interval.parse(each["bounds"]) if each["bounds"] else None,
                )
                for each in row["accepted"]
            ),
            tuple(map(Restatement.from_row, row.get("restated", []))),
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

    def declare_drained(self, drained: Drained, *, now: datetime) -> None:
        """Declare that the topic is finite."""
        row = {"state": "drained", "actor": drained.actor, "reason": drained.reason, "at": now}
        self._decide(row, lambda found: replace(found, drained=drained))

    def accept(self, gaps: Iterable[AcceptedGap]) -> None:
        """Let the stream go on without what is gone."""
        more = tuple(gaps)
        row = {
            "state": "hole accepted",
            "actor": more[0].actor,
            "reason": f"{'; '.join(str(each.gap) for each in more)}: {more[0].reason}",
            "at": more[0].at,
        }
        self._decide(row, lambda found: replace(found, accepted=(*found.accepted, *more)))

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
        """Write a decision, whoever else is renewing a lease meanwhile."""
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
                self._write(replace(current, lease=renewed), [])
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

    def _write(self, state: Control, written: list[files.DataFile]) -> None:
        self.table.append(written, txns={APP: self.table.version + 1}, metadata={STATE: state.to_json()})


def restatements(layout: Layout) -> tuple[Restatement, ...]:
    """List the restatements of a pipeline in the order of their decisions."""
    found = look(layout.table("control"), "restated", lambda table: ControlTable(table).read().restated)
    return found or ()
