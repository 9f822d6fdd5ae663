"""A person's repair: the master stands for what there is, where its tables contradict each other."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.renewing import keep_renewing
from seamline.lake.tables.torn_logs import repair_torn_logs
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.runtime.places import host_name
from seamline.runtime.processes import own_process_name
from seamline.spark.stream.epoch_writer import Writer

RENEWED_EVERY = 5.0


def repair_pipeline(pipeline: CompiledPipeline, layout: Layout, acceptance: Acceptance) -> list[str]:
    """Cut every table back to what is committed, as a start does; report in lines what was abandoned.

    LeaseHeld while a stream runs. Nothing of it is lost that Kafka still has: the next start reads it again.
    """
    repair_torn_logs(layout, now=datetime.now(UTC), accepted=True)
    control, before = ControlTable.ensure(layout), manifest_of(layout)
    holder = f"{host_name()}:{os.getpid()}:repair"
    lease = control.take(holder, process=own_process_name(), now=datetime.now(UTC))
    try:
        with keep_renewing(lambda: control.try_renew(lease), RENEWED_EVERY):
            writer = Writer(layout, pipeline, lease.token, acceptance=acceptance)
            writer.repair_ledger()
            state_edge(writer)
    finally:
        control.release(lease)
    return [
        *list_abandoned(before, manifest_of(layout)),
        f"{pipeline.name}: the tables are of one history, which ends at epoch {writer.master.epoch}.",
    ]


def state_edge(writer: Writer) -> None:
    """Commit an empty epoch that is an edge, so that builds need not wait for more records."""
    if not (newest := newest_epochs(writer.layout, 1)):
        return
    edge = Epoch(
        writer.take_number(),
        writer.token,
        datetime.now(UTC),
        writer.pipeline.record_version,
        watermark=newest[0].watermark,
        clock=newest[0].clock,
        edge=True,
    )
    writer.commit(edge, KernelResult(), writer.current)


def list_abandoned(before: Manifest, after: Manifest) -> list[str]:
    """List which generations are withdrawn, and which intervals wait for a build."""
    gone = sorted(after.forgotten - before.forgotten)
    raised = sorted(
        place for place, floor in after.floors.items() if floor > before.floors.get(place, NOTHING)
    )
    return [
        *(f"withdrawn: {view} {interval} {name}" for view, interval, name in gone),
        *(f"to be built: {view} {interval}" for view, interval in raised),
    ]
