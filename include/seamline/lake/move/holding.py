"""A pipeline kept still while it is moved: its lease, a claim on all intervals, and a fence in each table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_store import has_beginning
from seamline.lake.store.locations import delete_folder, list_places
from seamline.lake.tables.claims_table import claim_intervals
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.fencing_tokens import FENCED
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import require_repaired
from seamline.lake.tables.renewing import keep_renewing
from seamline.lake.tables.table_format import ALWAYS
from seamline.lake.tables.torn_logs import require_whole_logs
from seamline.model.errors import IntervalRunning, LeaseHeld, NotFound
from seamline.model.protocol.control import Control, Lease
from seamline.model.protocol.moving import Moved
from seamline.runtime.processes import own_process_name

RENEWED_EVERY = 5.0


@dataclass(frozen=True)
class Held:
    """A pipeline whose lease we have."""

    layout: Layout
    """Of its tables."""
    lease: Lease
    """Ours."""


@contextmanager
def hold_pipeline(layout: Layout, moved: Moved) -> Iterator[Held]:
    """Keep a pipeline's stream from starting, also where an earlier attempt of the same move has left its mark.

    LeaseHeld if the stream runs, or another attempt, or somebody who takes the move back.
    """
    control = ControlTable.ensure(layout)
    try:
        lease = control.take(
            f"move {moved.id} by {moved.actor}, attempt {uuid.uuid4().hex[:8]}",
            process=own_process_name(),
            now=datetime.now(UTC),
            moving=moved.id,
        )
    except LeaseHeld as held:
        stop = "driver stop" if layout.pipeline.startswith("_") else f"stream stop {layout.pipeline}"
        raise LeaseHeld(
            f"{layout.pipeline} is in use: {held.message}",
            hint=f"`seamline {stop}`, or end the other move; wait until it has stopped, then run this again.",
        ) from held
    beside = ControlTable.ensure(layout)
    try:
        with keep_renewing(lambda: beside.try_renew(lease), RENEWED_EVERY):
            yield Held(layout, lease)
    finally:
        control.release(lease)


def still_pipeline(held: Held, moved: Moved, claims: ExitStack) -> None:
    """Keep builds from beginning, and fence off whoever wrote before; OutOfStep if a start has to repair tables first.

    IntervalRunning if a build runs.
    """
    layout = held.layout
    if ControlTable.ensure(layout).read().moved or layout.pipeline.startswith("_"):
        return
    require_whole_logs(layout)
    require_repaired(layout)
    try:
        claims.enter_context(claim_intervals(layout, f"move-{moved.id}", moved.actor, [ALWAYS]))
    except IntervalRunning as running:
        raise IntervalRunning(f"{layout.pipeline} is in use: {running.message}", hint=running.hint) from None
    for place in FENCED:
        for root in list_places(layout.warehouse / layout.pipeline, place):
            with suppress(NotFound):
                Table.open(root).fence(held.lease.token)


def read_left_mark(layout: Layout) -> Moved | None:
    """Read the mark in a control table that an earlier move may have left; None if there is none, or it is open.

    What does not begin yet was never opened: a copy that was broken off is deleted before it is looked for.
    """
    root = layout.table("control")
    if not Table.exists(root):
        return None
    if not has_beginning(root):
        delete_folder(root)
        return None
    return ControlTable.ensure(layout).read().moved


def state_away(held: Held, moved: Moved) -> None:
    """State in the control table and in the manifest where the pipeline has moved; LeaseHeld if our lease is lost.

    From here on nothing is decided, claimed or published there.
    """

    def away(found: Control) -> Control:
        if found.lease is None or found.lease.token != held.lease.token:
            raise LeaseHeld(
                f"The lease of {held.layout.pipeline} was lost while its files were copied.",
                hint="run this again: what is copied stays.",
            )
        return replace(found, moved=moved)

    decide_about_move(held.layout, f"moved to {moved.to}", moved, away)
    state_manifest(held.layout, moved=True)


def state_here(layout: Layout, moved: Moved) -> None:
    """Let a pipeline be used where it is; nothing happens if another move has its mark there."""

    def here(found: Control) -> Control:
        return replace(found, moved=None) if found.moved and found.moved.id == moved.id else found

    state_manifest(layout, moved=False)
    if ControlTable.ensure(layout).read().moved:
        decide_about_move(layout, "is here", moved, here)


def state_finished(layout: Layout, moved: Moved) -> None:
    """State in the old place that all of a pipeline has arrived in the new one."""

    def finished(found: Control) -> Control:
        return replace(found, moved=replace(moved, arrived=True)) if found.moved == moved else found

    if ControlTable.ensure(layout).read().moved == moved:
        decide_about_move(layout, f"arrived at {moved.to}", moved, finished)


def decide_about_move(layout: Layout, state: str, moved: Moved, change: Callable[[Control], Control]) -> None:
    """Write a decision about a move into the control table."""
    row = {"state": state, "actor": moved.actor, "reason": f"move {moved.id}", "at": datetime.now(UTC)}
    ControlTable.ensure(layout).decide(row, change, away=True)


def state_manifest(layout: Layout, *, moved: bool) -> None:
    """State in the manifest whether the pipeline has moved, if it has a manifest."""
    if Table.exists(layout.table("manifest")):
        ManifestTable.ensure(layout).state_move(moved)
