"""The claims table: conditional commits say which run builds which intervals; each carries all claims.

A claim ends when its run gives it back, when its process is seen to be gone, or when nobody has renewed it for
TTL. Publishing does not rest on it: the manifest is compare-and-set, a claim only keeps two from the same work.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psutil
import pyarrow as pa
from deltalake.exceptions import DeltaError

from seamline.lake.layout import Layout
from seamline.lake.pins import look
from seamline.lake.tables import Table
from seamline.model.claims import Claim, conflicting
from seamline.model.errors import Conflict, IntervalRunning
from seamline.model.intervals import Interval, stamp

APP = STATE = "seamline.claims"
TTL = timedelta(seconds=90)
RENEWED_EVERY = 20.0
HANDED_OVER = timedelta(minutes=10)
"""How long a run's next task may take to begin."""
SCHEMA = pa.schema([("run", pa.string())])


class Claims:
    """Claims of a pipeline's intervals."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Claims:
        """Open the claims, made if they are not there."""
        settings = {"delta.logRetentionDuration": "interval 1 hours"}
        return cls(Table.ensure(layout.table("claims"), SCHEMA, settings=settings))

    def read(self) -> tuple[Claim, ...]:
        """Give every claim that was not given back, in the order they were taken."""
        found = self.table.refresh().metadata().get(STATE)
        return () if found is None else tuple(map(Claim.from_row, json.loads(found)))

    def take(self, claim: Claim, *, now: datetime) -> None:
        """Take a claim, in place of an earlier one of the same run; IntervalRunning while another run has one."""

        def taken(live: tuple[Claim, ...]) -> tuple[Claim, ...]:
            require_free(live, claim.run, claim.spans)
            return (*(each for each in live if each.run != claim.run), claim)

        self._change(taken, now)

    def renew(self, run: str, process: str, *, now: datetime) -> bool:
        """Prolong the claim that a process holds for a run; false if it holds none any more."""
        return self._prolong(run, process, process, now + TTL, now)

    def hand_over(self, run: str, process: str = "", *, now: datetime) -> None:
        """Keep the claim of a run, if it is this process's or nobody's, until its next task takes it up."""
        self._prolong(run, process, "", now + HANDED_OVER, now)

    def release(self, run: str, process: str = "", *, now: datetime) -> None:
        """Give the claim of a run back, if it has one that is this process's or nobody's."""
        self._change(lambda live: tuple(each for each in live if not held(each, run, process)), now)

    def _prolong(self, run: str, process: str, next: str, until: datetime, now: datetime) -> bool:
        kept = False

        def prolonged(live: tuple[Claim, ...]) -> tuple[Claim, ...]:
            nonlocal kept
            kept = any(held(each, run, process) for each in live)
            return tuple(
                replace(each, until=until, process=next) if held(each, run, process) else each
                for each in live
            )

        self._change(prolonged, now)
        return kept

    def _change(self, change: Callable[[tuple[Claim, ...]], tuple[Claim, ...]], now: datetime) -> None:
        """Decide on what is there, again each time another has decided meanwhile."""
        while True:
            found = self.read()
            changed = change(alive(found, now=now))
            if changed == found:
                return
            state = json.dumps([each.to_row() for each in changed])
            try:
                self.table.append([], txns={APP: self.table.version + 1}, metadata={STATE: state})
            except Conflict:
                continue
            return


def require_free(claims: Sequence[Claim], run: str, spans: Sequence[Interval]) -> None:
    """Raise IntervalRunning if another run has a claim that the spans of a run would meet."""
    if other := conflicting(claims, run, spans):
        raise IntervalRunning(
            f"{next(span for span in spans if other.meets(span))} is being built by {other}.",
            hint=f"wait for its end; without a sign of life it is free at {stamp(other.until)}.",
        )


def held(claim: Claim, run: str, process: str) -> bool:
    """Tell whether a claim is a run's and this process's, or between two; an attempt that was replaced has none."""
    return claim.run == run and claim.process in (process, "")


def claims_of(layout: Layout, *, now: datetime) -> tuple[Claim, ...]:
    """Give the claims that hold; none where there is no table."""
    found = look(layout.table("claims"), "claims", lambda table: Claims(table).read()) or ()
    return alive(found, now=now)


def alive(claims: Sequence[Claim], *, now: datetime) -> tuple[Claim, ...]:
    """Leave out what has run out, and what processes of this host held that are gone."""
    return tuple(each for each in claims if each.until > now and not gone(each.process))


def gone(process: str) -> bool:
    """Tell whether a process has ended; one of another host cannot be seen."""
    host, _, rest = process.partition(" ")
    if host != socket.gethostname():
        return False
    pid, _, born = rest.partition(" ")
    try:
        found = psutil.Process(int(pid))
        return str(found.create_time()) != born or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def myself() -> str:
    """Name this process, not to be mistaken for another of the same id."""
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time()}"


@contextmanager
def holding(
    layout: Layout, run: str, owner: str, spans: Sequence[Interval], *, hand_over: bool = False
) -> Iterator[None]:
    """Claim intervals for as long as the block runs; IntervalRunning if another run is at one of them.

    With ``hand_over`` the claim outlives a block that ends well, for the run's next task; ``release`` ends it.
    """
    claims, now, me = Claims.ensure(layout), datetime.now(UTC), myself()
    claims.take(Claim(run, owner, tuple(spans), now, now + TTL, me), now=now)
    ended = threading.Event()
    renewing = threading.Thread(target=renew_until, args=(ended, layout, run, me), daemon=True)
    renewing.start()
    kept = False
    try:
        yield
        kept = hand_over
    finally:
        ended.set()
        renewing.join()
        # What the block raised is what counts: a claim that cannot be given back runs out.
        with suppress(DeltaError, OSError):
            (claims.hand_over if kept else claims.release)(run, me, now=datetime.now(UTC))


def renew_until(ended: threading.Event, layout: Layout, run: str, process: str) -> None:
    """Renew a run's claim until it is ended, or lost."""
    claims = Claims.ensure(layout)
    while not ended.wait(RENEWED_EVERY):
        try:
            if not claims.renew(run, process, now=datetime.now(UTC)):
                return
        except (DeltaError, OSError):
            # A disk that is full for a moment must not end a build; without renewal the claim only runs out.
            continue
