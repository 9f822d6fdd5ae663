"""Restating: a look-up's table as it is now, and the decision in the control table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.lookups.lookup_tables import keep_lookup_version
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import Interval
from seamline.plan.batch.restating_plan import (
    find_joined_lookup,
    first_uses,
    plan_restatement,
)


def restate_lookup(
    pipeline: CompiledPipeline,
    layout: Layout,
    name: str,
    span: Interval,
    *,
    version: str = "",
    actor: str,
    reason: str,
    now: datetime,
) -> Restatement:
    """Decide by what is in the log now, and write the decision, which the next build of the intervals follows.

    Of epochs that were validated again it records what they are now, in the intervals in which they are.
    """
    epochs = read_reprocessed_log(pipeline, layout)
    made = decide_restatement(
        pipeline, layout, epochs, name, span, version=version, actor=actor, reason=reason, now=now
    )
    ControlTable.ensure(layout).restate(made)
    return made


def decide_restatement(
    pipeline: CompiledPipeline,
    layout: Layout,
    epochs: Sequence[Epoch],
    name: str,
    span: Interval,
    *,
    version: str = "",
    actor: str,
    reason: str,
    now: datetime,
) -> Restatement:
    """Make a decision. The table is read, and its version kept, unless an epoch has used the one that is asked for.

    Of rules that a topic makes the newest table is that of the last epoch. Raises what ``plan.batch.restating_plan``
    raises, and LookupBroken if the table has to be read and cannot be.
    """
    join = find_joined_lookup(pipeline, name)
    uses = first_uses(epochs, name, pipeline.record_version)
    if version in uses:
        newest = version
    elif join.of:
        newest = in_force(epochs, pipeline.record_version).get(name, "")
    else:
        newest = keep_lookup_version(join, layout)
    return plan_restatement(
        pipeline,
        epochs,
        name,
        span,
        version=version,
        newest=newest,
        actor=actor,
        reason=reason,
        now=now,
    )
