"""The control table: what a stream should be doing, and who holds its lease.

Every commit carries the whole state, so the newest commit is all a reader needs; changes of the desired
state are rows as well, with actor, reason and time.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import pyarrow as pa

from seamline.lake import files
from seamline.lake.layout import Layout
from seamline.lake.tables import Table
from seamline.lake.types import INSTANT
from seamline.model.errors import Conflict, LeaseHeld
from seamline.model.intervals import parse_moment, stamp

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
class Control:
    """The state of a stream's control table."""

    desired: Desired = Desired.UNSET
    actor: str = ""
    reason: str = ""
    lease: Lease | None = None


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
        if found is None:
            return Control()
        row = json.loads(found)
        lease = row["lease"]
        return Control(
            Desired(row["desired"]),
            row["actor"],
            row["reason"],
            Lease(lease["holder"], lease["token"], parse_moment(lease["until"])) if lease else None,
        )

    def want(self, desired: Desired, *, actor: str, reason: str, now: datetime) -> None:
        """Set the desired state, whoever else is renewing a lease meanwhile."""
        row = pa.Table.from_pylist(
            [{"state": desired.value, "actor": actor, "reason": reason, "at": now}], schema=SCHEMA
        )
        file = files.write(row, self.table.root, f"{uuid.uuid4().hex}.parquet", stats=[])
        while True:
            current = self.read()
            try:
                return self._write(replace(current, desired=desired, actor=actor, reason=reason), [file])
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
        lease = state.lease
        row = {
            "desired": state.desired.value,
            "actor": state.actor,
            "reason": state.reason,
            "lease": {"holder": lease.holder, "token": lease.token, "until": stamp(lease.until)}
            if lease
            else None,
        }
        self.table.append(written, txns={APP: self.table.version + 1}, metadata={STATE: json.dumps(row)})
