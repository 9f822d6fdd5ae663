"""What a rollback tells: which generations a view is served from since."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.view_versions import add_live_versions
from seamline.lineage.batch_lineage import read_generation_versions, read_version
from seamline.lineage.configuration import read_namespace
from seamline.lineage.table_names import name_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import Interval
from seamline.plan.lineage.batch_events import (
    BatchOutcome,
    BatchRun,
    describe_intervals,
    make_publish_event,
    name_batch_run,
)
from seamline.plan.lineage.lineage_events import LineageEvent, RunState

WHAT = "rollback"
"""The last word of the job's name."""


class RollbackLineage:
    """One rollback of an interval of a view; tables are looked at where it is told, and nothing else waits for that."""

    def __init__(
        self, pipeline: CompiledPipeline, layout: Layout, view: str, interval: Interval, reason: str
    ) -> None:
        self.given, self.layout, self.view, self.interval = pipeline, layout, view, interval
        self.reason = reason
        self.name = name_batch_run(
            read_namespace(),
            pipeline.name,
            WHAT,
            datetime.now(UTC),
            f"{view}.{interval.id}.{uuid.uuid4().hex}",
        )

    @cached_property
    def pipeline(self) -> CompiledPipeline:
        """The pipeline with the versions of the one view."""
        live = add_live_versions(self.given, self.layout)
        return replace(live, views=tuple(each for each in live.views if each.name == self.view))

    def look(self, state: RunState, error: str) -> LineageEvent:
        """Make the event of a state."""
        served = {each.name: read_version(self.layout.serving(each)) for each in self.pipeline.views}
        outcome = BatchOutcome(
            datetime.now(UTC),
            state,
            describe_intervals(self.pipeline.name, "", -1, [self.interval.id], self.reason),
            versions=read_generation_versions(self.pipeline, self.layout),
            served={name: version for name, version in served.items() if version is not None},
            error=error,
        )
        run = BatchRun(self.name, None, self.pipeline, name_tables(self.pipeline, self.layout))
        return make_publish_event(run, outcome)
