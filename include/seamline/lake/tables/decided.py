"""What people have decided about a pipeline, as whoever only reads finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.clusters.failovers import Failover
from seamline.model.protocol.control import AskDecision, Control, Lease
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.imported.imports import Import, add_import, cancel_import
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.protocol.restatement import Restatement


def find_connection(declared: str, layout: Layout) -> str:
    """Find the Airflow connection by which a pipeline's topics are read: that of the last failover, or ``declared``."""
    failovers = list_failovers(layout) if declared else ()
    return Control(failovers=failovers).find_connection(declared)


def list_failovers(layout: Layout) -> tuple[Failover, ...]:
    """List the decisions to go on from another cluster, oldest first."""
    found = read_cached_table(
        layout.table("control"), "failovers", lambda table: ControlTable(table).see().failovers
    )
    return found or ()


def decide_failover(
    control: ControlTable, lease: Lease, failover: Failover, before: Sequence[Failover]
) -> None:
    """Record a failover after those ``before``, which are registered; LeaseHeld where the lease is another's by now."""
    said = f"{failover}; {failover.reason}"
    row = {"state": "failover", "actor": failover.actor, "reason": said, "at": failover.at}
    set_failovers(control, lease, row, (*before, failover))


def take_back_failover(
    control: ControlTable,
    lease: Lease,
    before: Sequence[Failover],
    *,
    actor: str,
    reason: str,
    now: datetime,
) -> None:
    """Leave the failovers ``before`` alone in force; LeaseHeld where the lease is another's by now."""
    row = {"state": "failover taken back", "actor": actor, "reason": reason, "at": now}
    set_failovers(control, lease, row, before)


def set_failovers(
    control: ControlTable, lease: Lease, row: Mapping[str, object], failovers: Sequence[Failover]
) -> None:
    """Write the failovers that are in force from now on, while nobody else has the lease."""

    def change(found: Control) -> Control:
        if found.lease is None or found.lease.token != lease.token:
            raise (found.lease or lease).refusal()
        return replace(found, failovers=tuple(failovers))

    control.decide(row, change)


def list_restatements(layout: Layout) -> tuple[Restatement, ...]:
    """List the restatements of a pipeline in the order of their decisions."""
    found = read_cached_table(
        layout.table("control"), "restated", lambda table: ControlTable(table).see().restated
    )
    return found or ()


def find_question_births(layout: Layout) -> Mapping[str, tuple[int, int]]:
    """Find the last epoch, and the count of decisions, before each question to another system, by its id."""
    found = read_cached_table(
        layout.table("control"), "questions", lambda table: ControlTable(table).see().questions
    )
    return found or {}


def begin_questions(control: ControlTable, ids: Iterable[str], held: int, *, now: datetime) -> None:
    """Record of questions that are new that nobody is asked about rows of epochs up to one."""
    new = tuple(ids)
    row = {"state": "questions", "actor": "stream", "reason": ", ".join(new), "at": now}

    def change(found: Control) -> Control:
        return replace(found, questions={**dict.fromkeys(new, (held, len(found.asks))), **found.questions})

    control.decide(row, change)


def list_imports(layout: Layout) -> tuple[Import, ...]:
    """List the decisions to import rows of files, oldest first."""
    found = read_cached_table(
        layout.table("control"), "imports", lambda table: ControlTable(table).see().imports
    )
    return found or ()


def ask_for_import(control: ControlTable, new: Import, known: Sequence[Import], done: Sequence[str]) -> None:
    """Record a decision to import, as ``add_import`` does."""
    row = {"state": "import", "actor": new.actor, "reason": f"{new.origin}: {new.reason}", "at": new.at}
    control.decide(row, lambda found: replace(found, imports=add_import(found.imports, new, known, done)))


def decide_to_cancel(
    control: ControlTable, id: str, log: Sequence[Epoch], *, actor: str, reason: str, now: datetime
) -> None:
    """Record a decision to cancel an import, as ``cancel_import`` does."""
    row = {"state": "import cancelled", "actor": actor, "reason": f"{id}: {reason}", "at": now}
    why = f"{actor}: {reason}"
    control.decide(row, lambda found: replace(found, imports=cancel_import(found.imports, log, id, why)))


def list_fills(layout: Layout) -> tuple[OffsetRange, ...]:
    """List the offsets that were passed over and are to be read after all."""
    found = read_cached_table(layout.table("control"), "fills", lambda table: ControlTable(table).see().fills)
    return found or ()


def list_ask_decisions(layout: Layout) -> tuple[AskDecision, ...]:
    """List the decisions to ask other systems again, in their order."""
    found = read_cached_table(layout.table("control"), "asks", lambda table: ControlTable(table).see().asks)
    return found or ()
