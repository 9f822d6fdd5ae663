"""The claims table: conditional commits say which run builds which intervals.

A claim ends when its run releases it, when its process is seen to be gone, or when its beat is seen to stand still
for TTL. Publishing does not rest on it: the manifest is compare-and-set, a claim only keeps two from the same work.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pyarrow as pa
from deltalake.exceptions import DeltaError

from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decision_rows import WHOLE, Decisions
from seamline.lake.tables.readiness import require_here
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import IntervalRunning
from seamline.model.protocol.claims import Claim, find_conflicting_claim
from seamline.model.time.intervals import Interval
from seamline.runtime.processes import Life, boot_clock_seconds, life_of, own_process_name
from seamline.runtime.sightings import LOOKS_EVERY, Sighting, Standing

APP = "seamline.claims"
BEAT = "seamline.claims.beat."
"""App ids, each with the number of a slot: how often claims in it have been renewed."""
TTL = timedelta(seconds=90)
RENEWED_EVERY = 20.0
HANDED_OVER = timedelta(minutes=10)
"""How long a run's next task may take to begin."""
STATES = TAKEN, HANDED, RELEASED = "taken", "handed over", "released"
SCHEMA = pa.schema([("run", pa.string()), ("state", pa.string()), *WHOLE])


@dataclass
class Waiting:
    """How to wait until it is certain which claims other processes have."""

    clock: Callable[[], float] = boot_clock_seconds
    """Seconds, monotonic."""
    wait: Callable[[float], object] = time.sleep
    """Sleeps for a number of seconds."""
    sightings: dict[str, Sighting] = field(default_factory=dict)
    """What was seen of each claim so far, by run."""

    def assess(self, claim: Claim, now: datetime) -> Standing:
        """Assess whether a claim is live; each look brings more certainty."""
        if not claim.process:
            # Nobody beats between two tasks. An end that is too far away is of a clock that is hours ahead.
            return Standing.HELD if now < claim.until < now + 2 * HANDED_OVER else Standing.FREE
        if life_of(claim.process) is Life.ALIVE:
            return Standing.HELD
        sighting = self.sightings.setdefault(claim.run, Sighting(TTL.total_seconds(), self.clock))
        return sighting.look(lambda: claim)


class Claims:
    """Claims of a pipeline's intervals."""

    def __init__(self, table: Table) -> None:
        self.decisions = Decisions(table, APP, SCHEMA)

    @classmethod
    def ensure(cls, layout: Layout) -> Claims:
        """Open the claims; create them if missing."""
        return cls(Table.ensure(layout.table("claims"), SCHEMA))

    def read(self) -> tuple[Claim, ...]:
        """Read every claim that was not released, in the order in which they were taken."""
        text, table = self.decisions.read(), self.decisions.table
        found = map(Claim.from_row, json.loads(text)) if text else ()
        return tuple(replace(each, beat=table.txn(f"{BEAT}{each.slot}") or 0) for each in found)

    def list_live(self, *, now: datetime, waiting: Waiting | None = None) -> tuple[Claim, ...]:
        """List the live claims; those of another place are watched, for TTL at most."""
        found, free = self._sort_by_life(lambda _: True, now, waiting or Waiting())
        return tuple(each for each in found if each not in free)

    def _sort_by_life(
        self, asked: Callable[[Claim], bool], now: datetime, waiting: Waiting
    ) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
        """Read all claims, and list which of the ones ``asked`` about are not live any more."""
        while True:
            found = self.read()
            judged = {each: waiting.assess(each, now) for each in found if asked(each)}
            if Standing.UNSURE not in judged.values():
                return found, tuple(each for each, standing in judged.items() if standing is Standing.FREE)
            waiting.wait(LOOKS_EVERY)

    def take(self, claim: Claim, *, now: datetime, waiting: Waiting | None = None) -> None:
        """Take a claim, in place of an earlier one of the same run; IntervalRunning while another run has one.

        A claim of another place that is in the way is watched: until it is renewed, or was not for TTL.
        """
        watch = waiting or Waiting()

        def once() -> None:
            found, free = self._sort_by_life(
                lambda other: find_conflicting_claim([other], claim.run, claim.spans) is not None,
                now,
                watch,
            )
            live = tuple(each for each in found if each not in free and not has_claim_ended(each))
            require_free(live, claim.run, claim.spans)
            kept = [each for each in live if each.run != claim.run]
            self._write(claim.run, TAKEN, [*kept, replace(claim, slot=free_slot(kept))])

        retry_overtaken(once, attempts=None)

    def renew(self, run: str, process: str) -> bool:
        """Renew the claim that a process has for a run; false if it has none any more."""

        def once() -> bool:
            mine = next((each for each in self.read() if belongs_to_run(each, run, process)), None)
            if mine is not None:
                self.decisions.beat({f"{BEAT}{mine.slot}": mine.beat + 1})
            return mine is not None

        return retry_overtaken(once, attempts=None)

    def keep(self, run: str, process: str = "", *, now: datetime) -> None:
        """Keep the claim of a run, if it is this process's or nobody's, until the run's next task takes it."""

        def handed(found: tuple[Claim, ...]) -> tuple[Claim, ...]:
            until = now + HANDED_OVER
            return tuple(
                replace(each, until=until, process="") if belongs_to_run(each, run, process) else each
                for each in found
            )

        self._change(run, HANDED, handed)

    def release(self, run: str, process: str = "") -> None:
        """Release the claim of a run, if it is this process's or nobody's."""
        self._change(
            run,
            RELEASED,
            lambda found: tuple(each for each in found if not belongs_to_run(each, run, process)),
        )

    def _change(self, run: str, state: str, change: Callable[[tuple[Claim, ...]], tuple[Claim, ...]]) -> None:
        """Change the claims that are there, again each time another process was first."""

        def once() -> None:
            found = self.read()
            if (changed := change(found)) != found:
                self._write(run, state, changed)

        retry_overtaken(once, attempts=None)

    def _write(self, run: str, state: str, claims: Sequence[Claim]) -> None:
        whole = json.dumps([each.to_row() for each in claims])
        self.decisions.write({"run": run, "state": state}, whole)


def free_slot(claims: Collection[Claim]) -> int:
    """Return the lowest slot that no claim has: there are as many slots as there ever were claims at once."""
    taken = {each.slot for each in claims}
    return next(number for number in count(1) if number not in taken)


def require_free(claims: Sequence[Claim], run: str, spans: Sequence[Interval]) -> None:
    """Raise IntervalRunning if another run has a claim that the spans of a run would meet."""
    if other := find_conflicting_claim(claims, run, spans):
        raise IntervalRunning(
            f"{next(span for span in spans if other.overlaps(span))} is being built by {other}.",
            hint=f"wait until it ends; without a renewal its claim expires after {TTL.total_seconds():g} s.",
        )


def belongs_to_run(claim: Claim, run: str, process: str) -> bool:
    """Return whether a claim is a run's and this process's, or between two; an attempt that was replaced has none."""
    return claim.run == run and claim.process in (process, "")


def has_claim_ended(claim: Claim) -> bool:
    """Return whether a claim's process is seen to be gone."""
    return life_of(claim.process) is Life.GONE


def claims_of(layout: Layout, *, now: datetime, waiting: Waiting | None = None) -> tuple[Claim, ...]:
    """Return the live claims; none if there is no table. Assessing one of another place takes two renewals."""
    if not Table.exists(layout.table("claims")):
        return ()
    return Claims(Table.open(layout.table("claims"))).list_live(now=now, waiting=waiting)


def claims_shown(layout: Layout) -> tuple[Claim, ...]:
    """Return the claims to show without waiting: all but those whose process is seen to be gone."""
    if not Table.exists(layout.table("claims")):
        return ()
    found = Claims(Table.open(layout.table("claims"))).read()
    return tuple(each for each in found if not has_claim_ended(each))


@contextmanager
def claim_intervals(
    layout: Layout, run: str, owner: str, spans: Sequence[Interval], *, hand_over: bool = False
) -> Iterator[None]:
    """Claim intervals for as long as the block runs; IntervalRunning if another run is at one of them.

    MovedAway if the pipeline has moved to another warehouse.

    With ``hand_over`` the claim outlives a block that ends well, for the run's next task; ``release`` ends it.
    """
    claims, now, me = Claims.ensure(layout), datetime.now(UTC), own_process_name()
    claims.take(Claim(run, owner, tuple(spans), now, now + TTL, me), now=now)
    kept, beside = False, Claims.ensure(layout)
    try:
        # Whoever moves the pipeline away takes all claims, and leaves its mark before it gives them back.
        require_here(layout)
        with keep_renewing(lambda: beside.renew(run, me), RENEWED_EVERY):
            yield
        kept = hand_over
    finally:
        # What the block raised is what counts: a claim that cannot be given back is seen to have ended.
        with suppress(DeltaError, OSError):
            if kept:
                claims.keep(run, me, now=datetime.now(UTC))
            else:
                claims.release(run, me)
