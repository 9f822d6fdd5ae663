"""What people do with a stream: one implementation for the command line, the DAG's form and REST.

An order changes the control table; whoever keeps the stream up (its supervisor, the reconcile DAG) makes it so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.publish.flipping import flip_views
from seamline.lake.storage.layout import Layout
from seamline.lake.tables import readiness
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.manifest_table import manifest_of
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange
from seamline.model.protocol.holes import (
    AcceptedGap,
    find_gaps,
    list_end_offsets,
    list_missing_ranges,
    to_register,
)
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.protocol.savepoint import Savepoint, find_savepoint, with_one_more
from seamline.model.time.intervals import Interval
from seamline.plan.stream.start_positions import From, StartPlace, find_skipped_gaps
from seamline.runtime.processes import Life, life_of
from seamline.supervisor.sources.source_losses import find_start_offsets, offsets_now


class Action(StrEnum):
    """What may be done; a savepoint and a restore need a name."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESTART = "restart"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"


class Upgrade(StrEnum):
    """How a restart takes up a changed definition, as operators of stream processors know it.

    LAST_STATE: changed views begin as new versions, the others go on, nothing is passed over. SAVEPOINT: the same,
    and the position before it gets a name to which `restore` goes back. STATELESS: what is not read yet is passed over.
    """

    LAST_STATE = "last-state"
    SAVEPOINT = "savepoint"
    STATELESS = "stateless"


@dataclass(frozen=True)
class Order:
    """What someone wants done, and why."""

    action: Action
    """What is to be done."""
    actor: str
    """Who wants it."""
    reason: str = ""
    """Why, recorded in the control log; empty if nothing was said."""
    place: StartPlace = StartPlace()
    """Where a start or restart reads from."""
    fill: bool = False
    """Whether skipped offsets are read beside the live stream."""
    lost: Interval | None = None
    """The event times that skipped offsets can have; None for any."""
    name: str = ""
    """The savepoint's name; empty for none, or for one made up from the time."""
    upgrade: Upgrade = Upgrade.LAST_STATE
    """How a restart takes up a changed definition."""


def carry_out(
    order: Order, pipeline: CompiledPipeline, layout: Layout, *, env: Mapping[str, str] = os.environ
) -> list[str]:
    """Carry out an order and report in lines what was done; ``env`` has the pipeline's connection."""
    control, now = ControlTable.ensure(layout), datetime.now(UTC)
    match order.action:
        case Action.START | Action.RESTART:
            return start_stream(order, pipeline, layout, control, now, env)
        case Action.STOP | Action.PAUSE:
            lines = []
            if order.name:
                lines.append(
                    store_savepoint(pipeline, control, build_savepoint(order, pipeline, layout, control, now))
                )
            state = Desired.STOPPED if order.action is Action.STOP else Desired.PAUSED
            control.want(state, actor=order.actor, reason=order.reason, now=now)
            return [*lines, f"{pipeline.name}: the stream should be {state}."]
        case Action.SAVEPOINT:
            return [
                store_savepoint(pipeline, control, build_savepoint(order, pipeline, layout, control, now))
            ]
        case Action.RESTORE:
            return restore_savepoint(order, pipeline, layout, control)


def start_stream(
    order: Order,
    pipeline: CompiledPipeline,
    layout: Layout,
    control: ControlTable,
    now: datetime,
    env: Mapping[str, str],
) -> list[str]:
    """Start the stream, from where it was asked for; all is decided before anything is written."""
    place = order.place
    if order.upgrade is Upgrade.STATELESS and place.kind is From.LEDGER:
        place = StartPlace(From.LATEST)
    if order.fill and place.kind is From.LEDGER:
        raise BadRange(
            "A start at the ledger's end passes nothing over.", hint="pass --from, or do not fill the gap."
        )
    named_too = order.upgrade is Upgrade.SAVEPOINT or order.name
    point = build_savepoint(order, pipeline, layout, control, now) if named_too else None
    move = (
        plan_offset_move(order, place, pipeline, layout, control, now, env)
        if place.kind is not From.LEDGER
        else None
    )
    lines = []
    if point:
        lines.append(store_savepoint(pipeline, control, point))
    if move:
        control.pass_over(
            move.accepted, void=move.void, fill=order.fill, actor=order.actor, reason=move.reason, now=now
        )
        lines += move.describe(pipeline.name, fill=order.fill)
    found = control.read()
    if order.action is Action.RESTART or found.lease is None or life_of(found.lease.process) is Life.GONE:
        # A supervisor that has given up, and its lease back, starts again for this alone.
        control.restart(actor=order.actor, reason=order.reason, now=now)
    else:
        control.want(Desired.RUNNING, actor=order.actor, reason=order.reason, now=now)
    done = "be started anew" if order.action is Action.RESTART else "be running"
    return [*lines, f"{pipeline.name}: the stream should {done}."]


@dataclass(frozen=True)
class PositionMove:
    """A move of read positions, and the decisions that it makes."""

    accepted: tuple[AcceptedGap, ...]
    """One for each run of skipped offsets."""
    void: tuple[AcceptedGap, ...]
    """Earlier decisions that it replaces."""
    reason: str
    """Why, recorded in the control log."""
    answers: bool = False
    """Whether the pipeline asks other systems, whose skipped answers are read anyway."""
    notes: tuple[str, ...] = ()
    """What is to be known about where partitions continue, a line each."""

    def describe(self, pipeline: str, *, fill: bool) -> list[str]:
        """Describe what is passed over."""
        gaps, notes = [each.gap for each in self.accepted], [f"  {each}" for each in self.notes]
        count = sum(len(gap.range) for gap in gaps)
        if not count:
            said = f"{pipeline}: nothing is passed over; every partition continues where it was read to."
            return [said, *notes]
        then = "read from Kafka beside the live stream" if fill else "a hole in the log"
        but = "" if fill or not self.answers else "; answers among them are read anyway"
        said = f"{pipeline}: {count} offsets are passed over, and will be {then}{but}:"
        return [said, *(f"  {gap}" for gap in gaps), *notes]


def plan_offset_move(
    order: Order,
    place: StartPlace,
    pipeline: CompiledPipeline,
    layout: Layout,
    control: ControlTable,
    now: datetime,
    env: Mapping[str, str],
) -> PositionMove:
    """Decide on what is passed over; what an earlier such order passes over and no stream has met yet is void."""
    offsets = offsets_now(pipeline, place, env)
    ledger = read_condensed_log(layout)
    held = list_end_offsets(ledger)
    start = find_start_offsets(place, offsets, held)
    found = find_skipped_gaps(held, offsets.beginnings, offsets.ends, start.chosen)
    kept = find_gaps(ledger, offsets.beginnings)
    before = control.read().accepted
    waiting = {each.gap.lane for each in to_register(ledger, before)}
    reason = order.reason or f"started at {place.kind} {place.group}".rstrip()
    return PositionMove(
        accepted=tuple(AcceptedGap(gap, order.actor, reason, now, order.lost) for gap in found),
        void=tuple(each for each in before if each.gap.lane in waiting and each.gap not in kept),
        reason=reason,
        answers=bool(pipeline.asks),
        notes=start.notes,
    )


def build_savepoint(
    order: Order, pipeline: CompiledPipeline, layout: Layout, control: ControlTable, now: datetime
) -> Savepoint:
    """Build a savepoint at the newest committed epoch; BadRange before the first, and if its name is taken."""
    ledger = read_condensed_log(layout)
    if not ledger:
        raise BadRange(
            f"{pipeline.name} has no epoch yet.", hint="start its stream; there is nothing to go back to."
        )
    point = Savepoint(
        name=order.name or f"before-{now:%Y%m%dT%H%M%SZ}",
        epoch=ledger[-1].number,
        ends=list_end_offsets(ledger),
        served=dict(manifest_of(layout).serving),
        record_version=ledger[-1].record_version,
        actor=order.actor,
        reason=order.reason,
        at=now,
    )
    with_one_more(control.read().savepoints, point)
    return point


def store_savepoint(pipeline: CompiledPipeline, control: ControlTable, point: Savepoint) -> str:
    """Store a savepoint, and return the line that reports it."""
    control.save(point)
    return f"{pipeline.name}: savepoint {point}"


def restore_savepoint(
    order: Order, pipeline: CompiledPipeline, layout: Layout, control: ControlTable
) -> list[str]:
    """Serve the versions that a savepoint names; the log is not cut back, and nothing is read twice."""
    point = find_savepoint(control.read().savepoints, order.name)
    ledger = read_condensed_log(layout)
    if not ledger or ledger[-1].number < point.epoch:
        raise BadRange(
            f"The log ends at epoch {ledger[-1].number if ledger else -1}, before the savepoint's {point.epoch}.",
            hint="the tables are older than the savepoint: start the stream, which reads on from where they end.",
        )
    manifest = manifest_of(layout)
    lines = [
        f"{pipeline.name}: restored {point.name}, epoch {point.epoch}; the log continues at {ledger[-1].number}."
    ]
    if not readiness.is_epoch_committed(layout, point.epoch):
        lines.append(
            f"  the log has lost epoch {point.epoch} since: its records were read again under later numbers"
        )
    others = {view: id for view, id in point.served.items() if manifest.serving.get(view) != id}
    if others:
        flip_views(pipeline, layout, {view: id.partition("/")[2] for view, id in others.items()})
    for view, id in sorted(point.served.items()):
        instead = f"again, instead of {manifest.serving.get(view, 'none')}" if view in others else "as then"
        lines.append(f"  {view}: {id} is served{'' if view in others else ','} {instead}")
    lines += format_savepoint_drift(pipeline, point, manifest)
    return lines


def format_savepoint_drift(pipeline: CompiledPipeline, point: Savepoint, manifest: Manifest) -> list[str]:
    """Describe what the definition has that the savepoint had not."""
    lines = [
        f"  the definition's {view.id} is fed beside it; fix the file, or flip to it again"
        for view in pipeline.views
        if view.id in manifest.births and view.id not in point.served.values()
    ]
    if pipeline.record_version != point.record_version:
        lines.append(
            f"  records are validated by version {pipeline.record_version} now, then by {point.record_version}: "
            f"restore the file as well, restart, then `seamline quarantine replay {pipeline.name}`"
        )
    return lines


def request_hole_fills(
    pipeline: CompiledPipeline, layout: Layout, number: int | None, actor: str, reason: str
) -> list[OffsetRange]:
    """Ask for holes to be filled, the one of that number or all; return the offsets."""
    missing = list_missing_ranges(read_condensed_log(layout))
    if number is not None and number not in missing:
        raise BadRange(
            f"Epoch {number} is not a hole with missing offsets.",
            hint=f"see `seamline holes list {pipeline.name}`.",
        )
    asked = (part for hole, some in missing.items() if number in (None, hole) for part in some)
    # What is still to be imported is no loss of Kafka's, and what a table has lost is nowhere.
    parts = [part for part in asked if len(part) and not (part.lane.imported or part.lane.of_table)]
    if not parts:
        raise BadRange(
            f"{pipeline.name} has no hole that can be filled.",
            hint=f"see `seamline holes list {pipeline.name}`.",
        )
    ControlTable.ensure(layout).fill(parts, actor=actor, reason=reason, now=datetime.now(UTC))
    return parts
