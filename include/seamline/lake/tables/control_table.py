"""The control table: what a stream should be doing, who has its lease, and what people have decided.

Each decision is a row with actor, reason, time and the whole state after it. A lease is renewed by a commit without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import pyarrow as pa

from seamline.lake.storage import durability
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, name_warehouse
from seamline.lake.store.moved_warehouses import read_moved
from seamline.lake.tables.decision_rows import WHOLE, Decisions
from seamline.lake.tables.fencing_tokens import newest_token
from seamline.lake.tables.occupied_places import require_no_log_elsewhere
from seamline.model.errors import LeaseHeld
from seamline.model.protocol.control import AskDecision, Control, Desired, Drained, Lease
from seamline.model.protocol.holes import AcceptedGap
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.savepoint import Savepoint, with_one_more
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.runtime.processes import boot_clock_seconds
from seamline.runtime.sightings import LOOKS_EVERY, Sighting, Standing

__all__ = [
    "TTL",
    "Control",
    "ControlTable",
    "Desired",
    "Drained",
    "Lease",
]

APP = "seamline.control"
BEAT = "seamline.beat"
"""App id: how often the lease has been renewed."""
RENEWED = "seamline.renewed"
"""In a commit's metadata: when the lease was renewed last, by its holder's clock."""
TTL = timedelta(seconds=15)
PASSING = TAKEN, RELEASED = "lease taken", "lease released"
"""States of rows that nobody looks for once the lease is another's."""
SCHEMA = pa.schema(
    [("state", pa.string()), ("actor", pa.string()), ("reason", pa.string()), ("at", INSTANT), *WHOLE]
)


class ControlTable:
    """Conditional changes to the desired state and the lease."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.decisions = Decisions(table, APP, SCHEMA)
        self._seen: tuple[int, Control] | None = None
        self.looked = float("-inf")
        """When the newest version was last asked for, in seconds since the machine was started."""

    @classmethod
    def ensure(cls, layout: Layout) -> ControlTable:
        """Open the control table; create it if missing. SetupError where the pipeline has its log elsewhere."""
        require_no_log_elsewhere(layout)
        return cls(Table.ensure(layout.table("control"), SCHEMA))

    def read(self) -> Control:
        """Read the state at the newest version; ProtocolError if another writer has deleted it."""
        began = boot_clock_seconds()
        self.table.refresh()
        self.looked = began
        return self.see()

    def see(self) -> Control:
        """Return the state at the version that the handle sees, as ``read`` does."""
        text = self.decisions.see()
        if self._seen is None or self._seen[0] != self.table.version:
            state = Control() if text is None else Control.from_json(text)
            if state.lease:
                state = replace(state, lease=self._beaten(state.lease))
            self._seen = self.table.version, state
        return self._seen[1]

    @property
    def given(self) -> int:
        """Return the newest token that this table may have given out."""
        return max(self.read().token, self.table.version)

    def _beaten(self, lease: Lease) -> Lease:
        """Add what its renewals say; an earlier release renews by commits that say nothing else."""
        beat = self.table.txn(BEAT if self.decisions.begun else APP) or 0
        recent = chain.from_iterable(map(self.table.history, (1, 2)))
        said = next((info[RENEWED] for info in recent if RENEWED in info), None)
        return replace(lease, beat=beat, renewed=parse_moment(said) if said else None)

    def want(self, desired: Desired, *, actor: str, reason: str, now: datetime) -> None:
        """Set the desired state."""
        row = {"state": desired.value, "actor": actor, "reason": reason, "at": now}
        self.decide(row, lambda found: replace(found, desired=desired, actor=actor, reason=reason))

    def restart(self, *, actor: str, reason: str, now: datetime) -> None:
        """Ask for the driver to be restarted, and want the stream to run."""
        row = {"state": "restart", "actor": actor, "reason": reason, "at": now}

        def change(found: Control) -> Control:
            again = replace(found, desired=Desired.RUNNING, restarts=found.restarts + 1)
            return replace(again, actor=actor, reason=reason)

        self.decide(row, change)

    def fill(self, parts: Iterable[OffsetRange], *, actor: str, reason: str, now: datetime) -> None:
        """Ask for offsets that were passed over to be read."""
        more = tuple(parts)
        row = {"state": "fill", "actor": actor, "reason": reason, "at": now}
        self.decide(row, lambda found: replace(found, fills=(*found.fills, *more)))

    def save(self, savepoint: Savepoint) -> None:
        """Name a position; BadRange if the name is taken."""
        row = {"state": "savepoint", "actor": savepoint.actor, "reason": str(savepoint), "at": savepoint.at}
        self.decide(row, lambda found: replace(found, savepoints=with_one_more(found.savepoints, savepoint)))

    def declare_drained(self, drained: Drained, *, now: datetime) -> None:
        """Declare that the topic is finite."""
        row = {"state": "drained", "actor": drained.actor, "reason": drained.reason, "at": now}
        self.decide(row, lambda found: replace(found, drained=drained))

    def accept(self, gaps: Iterable[AcceptedGap]) -> None:
        """Let the stream continue without what is lost; a supervisor that waits or has given up tries again at once."""
        more = tuple(gaps)
        row = {
            "state": "hole accepted",
            "actor": more[0].actor,
            "reason": f"{'; '.join(str(each.gap) for each in more)}: {more[0].reason}",
            "at": more[0].at,
        }
        self.decide(
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

        self.decide(row, change)

    def restate(self, decision: Restatement) -> None:
        """Let builds take rows of some intervals as another version of a look-up has them."""
        row = {
            "state": "restated",
            "actor": decision.actor,
            "reason": f"{decision.lookup} {decision.version} in {decision.span}: {decision.reason}",
            "at": decision.at,
        }
        self.decide(row, lambda found: replace(found, restated=(*found.restated, decision)))

    def ask_again(self, decision: AskDecision) -> None:
        """Let another system be asked again about rows without an answer."""
        row = {"state": "ask", "actor": decision.actor, "reason": str(decision), "at": decision.at}
        self.decide(row, lambda found: replace(found, asks=(*found.asks, decision)))

    def decide(
        self, row: Mapping[str, object], change: Callable[[Control], Control], *, away: bool = False
    ) -> None:
        """Write a decision, even while others renew a lease; the log that it may be about is synced to disk first.

        MovedAway once the pipeline has moved, unless it is ``away`` that is decided about.
        """
        durability.sync_disk(self.table.root)
        look = self.read if away else lambda: self._require_here(self.read())
        retry_overtaken(lambda: self._write(row, change(look())), attempts=None)

    def _require_here(self, found: Control, *, moving: str = "") -> Control:
        """Return the state; MovedAway if the pipeline has moved, other than by the move ``moving``."""
        folder = self.table.root.parent
        # One that was never decided about may be new in a warehouse that has moved.
        moved = found.moved if self.decisions.begun else read_moved(folder.parent)
        if moved and moved.id != moving:
            raise moved.refusal(folder.name, name_warehouse(folder.parent))
        return found

    def take(
        self,
        holder: str,
        *,
        now: datetime,
        process: str = "",
        moving: str = "",
        clock: Callable[[], float] = boot_clock_seconds,
        wait: Callable[[float], object] = time.sleep,
    ) -> Lease:
        """Take the lease; LeaseHeld if another holder is seen to live.

        One whose process is not seen to be gone is watched: until its beat moves, or has stood still for TTL of the
        ``clock``. ``process`` is who will renew it, as ``own_process_name`` says; ``now`` is for people. Its token
        is above those that the pipeline's tables carry: a control table from a backup has forgotten some.
        MovedAway if the pipeline has moved; only the move ``moving`` itself may take it then.
        """
        sight, found = Sighting(TTL.total_seconds(), clock), Control()

        def read() -> Lease | None:
            nonlocal found
            found = self.read()
            return found.lease

        def once() -> Lease:
            while True:
                standing = sight.look(read)
                if standing is Standing.FREE or not found.lease or found.lease.is_of(holder, process):
                    break
                if standing is Standing.HELD:
                    raise found.lease.refusal()
                wait(LOOKS_EVERY)
            self._require_here(found, moving=moving)
            # Not read again: what is written was decided on this version.
            token = max(found.token, self.table.version, newest_token(self.table.root.parent)) + 1
            lease = Lease(holder, token, process, renewed=now)
            row = {"state": TAKEN, "actor": holder, "reason": "", "at": now}
            self._write(row, replace(found, lease=lease, token=token))
            return lease

        return retry_overtaken(once, attempts=None)

    def live_lease(
        self, *, clock: Callable[[], float] = boot_clock_seconds, wait: Callable[[float], object] = time.sleep
    ) -> Lease | None:
        """Return the lease if its holder is seen to live; None if there is none, or its holder is seen to be gone.

        Takes as long as two renewals of a holder of another place, TTL at most.
        """
        sight = Sighting(TTL.total_seconds(), clock)
        while (standing := sight.look(lambda: self.read().lease)) is Standing.UNSURE:
            wait(LOOKS_EVERY)
        return self.read().lease if standing is Standing.HELD else None

    def renew(self, lease: Lease, *, now: datetime) -> Lease:
        """Renew one's own lease; LeaseHeld once another has it."""

        def once() -> Lease:
            current = self.read().lease
            if current is None or current.token != lease.token:
                holder = current.holder if current else "nobody"
                raise LeaseHeld(f"{holder} now holds the lease with token {lease.token}.", hint="exit.")
            renewed = replace(current, beat=current.beat + 1, renewed=now)
            self.decisions.beat({BEAT: renewed.beat}, {RENEWED: format_utc_instant(now)})
            return renewed

        return retry_overtaken(once, attempts=None)

    def try_renew(self, lease: Lease) -> bool:
        """Renew one's own lease; false once another has it."""
        try:
            self.renew(lease, now=datetime.now(UTC))
        except LeaseHeld:
            return False
        return True

    def release(self, lease: Lease) -> None:
        """Release one's own lease; nothing happens if another has it."""
        row = {"state": RELEASED, "actor": lease.holder, "reason": "", "at": datetime.now(UTC)}

        def once() -> None:
            current = self.read()
            if current.lease is not None and current.lease.token == lease.token:
                self._write(row, replace(current, lease=None))

        retry_overtaken(once, attempts=None)

    def _write(self, row: Mapping[str, object], state: Control) -> None:
        renewed = state.lease and state.lease.renewed
        self.decisions.write(
            row, state.to_json(), metadata={RENEWED: format_utc_instant(renewed)} if renewed else None
        )
