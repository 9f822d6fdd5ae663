"""A person's repair: the master stands for what there is, where its tables contradict each other."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

from seamline.lake.control import ControlTable
from seamline.lake.layout import Layout
from seamline.lake.processes import myself
from seamline.lake.snapshot import manifest_of
from seamline.model.compiled import CompiledPipeline
from seamline.plan.repair import Acceptance
from seamline.spark.writer import Writer


def repaired(pipeline: CompiledPipeline, layout: Layout, acceptance: Acceptance) -> list[str]:
    """Bring every table down to what the master holds, in the place of a start; say in lines what was given up.

    LeaseHeld while a stream runs. Nothing of it is lost that Kafka still has: the next start reads it again.
    """
    control, before = ControlTable.ensure(layout), manifest_of(layout)
    holder = f"{socket.gethostname()}:{os.getpid()}:repair"
    lease = control.take(holder, process=myself(), now=datetime.now(UTC))
    try:
        writer = Writer(layout, pipeline, lease.token, acceptance=acceptance)
        writer.repaired()
    finally:
        control.release(lease)
    after = manifest_of(layout)
    gone = sorted(after.forgotten - before.forgotten)
    raised = sorted(place for place, floor in after.floors.items() if floor > before.floors.get(place, -1))
    return [
        *(f"withdrawn: {view} {interval} {name}" for view, interval, name in gone),
        *(f"to be built: {view} {interval}" for view, interval in raised),
        f"{pipeline.name}: the tables are of one history, which ends at epoch {writer.master.epoch}.",
    ]
