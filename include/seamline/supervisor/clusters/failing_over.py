"""A failover decided on, and taken back, with every earlier driver fenced off."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import decide_failover, take_back_failover
from seamline.lake.tables.renewing import keep_renewing
from seamline.lake.tables.torn_logs import repair_torn_logs
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange
from seamline.model.protocol.clusters.failovers import Failover, list_registered
from seamline.model.protocol.control import Lease
from seamline.plan.stream.failover_plan import FailoverRequest
from seamline.runtime.places import host_name
from seamline.runtime.processes import own_process_name
from seamline.spark.stream.epoch_writer import Writer
from seamline.supervisor.clusters.failover_drafts import Drafted, draft_failover, require_stopped
from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder

RENEWED_EVERY = 5.0


@contextmanager
def hold_stream(pipeline: CompiledPipeline, layout: Layout) -> Iterator[tuple[ControlTable, Lease]]:
    """Hold the lease of a stream that is stopped, with every earlier driver fenced off: its log stays as it is.

    A driver that is taken for dead may wake. BadRange for a stream that should run, LeaseHeld for one that does.
    """
    control = ControlTable.ensure(layout)
    require_stopped(pipeline.name, control.read())
    repair_torn_logs(layout, now=datetime.now(UTC))
    holder = f"{host_name()}:{os.getpid()}:failover"
    lease = control.take(holder, process=own_process_name(), now=datetime.now(UTC))
    try:
        with keep_renewing(lambda: control.try_renew(lease), RENEWED_EVERY):
            Writer(layout, pipeline, lease.token).repair_ledger()
            yield control, lease
    finally:
        control.release(lease)


def carry_out_failover(
    order: FailoverOrder, pipeline: CompiledPipeline, layout: Layout, env: Mapping[str, str]
) -> list[str]:
    """Carry out an order and report in lines what it would be, or what was done; ``env`` has both connections."""
    match order.action:
        case FailoverAction.PLAN:
            return [*draft_failover(pipeline, layout, order.read(), env).lines]
        case FailoverAction.DECIDE:
            return [*fail_over(pipeline, layout, order.read(), env).lines]
        case FailoverAction.CANCEL:
            made = cancel(pipeline, layout, actor=order.actor, reason=order.reason)
            return [
                f"{pipeline.name}: the failover to {made.connection} is taken back; the next start reads {made.left}."
            ]


def fail_over(
    pipeline: CompiledPipeline, layout: Layout, request: FailoverRequest, env: Mapping[str, str]
) -> Drafted:
    """Decide on a failover, in the place of one that no driver has registered."""
    with hold_stream(pipeline, layout) as (control, lease):
        drafted = draft_failover(pipeline, layout, request, env)
        decide_failover(control, lease, drafted.failover, drafted.before)
        return drafted


def cancel(pipeline: CompiledPipeline, layout: Layout, *, actor: str, reason: str) -> Failover:
    """Take back the failover that no driver has registered yet; BadRange if there is none."""
    with hold_stream(pipeline, layout) as (control, lease):
        known = control.read().failovers
        before = list_registered(known, read_condensed_log(layout))
        if before == known:
            raise BadRange(
                f"{pipeline.name} has no failover that can be taken back.",
                hint="if a driver has registered it, fail back with another failover.",
            )
        take_back_failover(control, lease, before, actor=actor, reason=reason, now=datetime.now(UTC))
        return known[-1]
