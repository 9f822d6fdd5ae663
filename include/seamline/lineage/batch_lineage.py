"""What a build and a publication tell: read from the tables, when it is told."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property

from seamline.lake.publish.publishing import list_run_publications
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.view_versions import add_live_versions
from seamline.lineage.table_names import name_tables
from seamline.lineage.task_attempts import TaskAttempt
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.job_arguments import BuildJob
from seamline.plan.lineage.batch_events import (
    BatchOutcome,
    BatchRun,
    describe_intervals,
    make_build_event,
    make_publish_event,
    name_batch_run,
    name_parents,
)
from seamline.plan.lineage.lineage_events import LineageEvent, RunState


class BatchLineage:
    """What all tasks of a batch run have in common."""

    what = ""
    """The last word of the job's name."""

    def __init__(self, attempt: TaskAttempt, layout: Layout) -> None:
        self.attempt, self.layout = attempt, layout

    @cached_property
    def pipeline(self) -> CompiledPipeline:
        """The pipeline with the versions of its views that run."""
        return add_live_versions(load_pipeline(definitions_folder(), self.layout.pipeline), self.layout)

    @cached_property
    def run(self) -> BatchRun:
        """The run, and what has started it."""
        known = self.attempt
        attempt = f"{known.dag}.{known.task}.{known.run}.{known.attempt}.{known.mapped}.{known.cleared}"
        return BatchRun(
            name_batch_run(known.namespace, self.pipeline.name, self.what, known.moment, attempt),
            name_parents(
                known.namespace,
                known.dag,
                known.task,
                known.moment,
                attempt=known.attempt,
                mapped=known.mapped,
                cleared=known.cleared,
            ),
            self.pipeline,
            name_tables(self.pipeline, self.layout),
        )


class BuildLineage(BatchLineage):
    """What a build tells."""

    what = "build"

    def __init__(self, attempt: TaskAttempt, layout: Layout, job: BuildJob) -> None:
        super().__init__(attempt, layout)
        self.job = job

    @cached_property
    def master(self) -> int | None:
        """The version of the master as the build begins: it has every row up to the cut."""
        return read_version(self.layout.table("master"))

    def look(self, state: RunState, error: str) -> LineageEvent:
        """Make the event of a state; of a build that is complete it has what was written."""
        master = self.master
        versions = {} if master is None else {"master": master}
        rows = Builds.ensure(self.layout).of(self.job.run) if state is RunState.COMPLETE else []
        written: dict[str, int] = {}
        for row in rows:
            written[row.view] = written.get(row.view, 0) + row.rows
        spans = [each.id for span in self.job.spans for each in self.pipeline.grid.within(span)]
        outcome = BatchOutcome(
            datetime.now(UTC),
            state,
            describe_intervals(self.pipeline.name, self.job.run, self.job.cut, spans, self.job.reason),
            versions={**versions, **read_generation_versions(self.pipeline, self.layout)},
            rows=written,
            error=error,
        )
        return make_build_event(self.run, outcome)


class PublicationLineage(BatchLineage):
    """What a publication tells."""

    what = "publish"

    def look(self, state: RunState, error: str) -> LineageEvent:
        """Make the event of a state; of one that is complete it has what answers now."""
        run = self.attempt.run
        done = list_run_publications(self.layout, run) if state is RunState.COMPLETE else []
        served = {view.name: read_version(self.layout.serving(view)) for view in self.pipeline.views}
        outcome = BatchOutcome(
            datetime.now(UTC),
            state,
            describe_intervals(
                self.pipeline.name,
                run,
                max((each.epoch for each in done), default=-1),
                (each.interval for each in done),
                next((each.reason for each in done), ""),
            ),
            versions=read_generation_versions(self.pipeline, self.layout),
            served={view: version for view, version in served.items() if version is not None},
            certificates=Certificates.ensure(self.layout).of(run=run),
            error=error,
        )
        return make_publish_event(self.run, outcome)


def read_generation_versions(pipeline: CompiledPipeline, layout: Layout) -> dict[str, int]:
    """Read the versions of the generations that there are, by ``name/fingerprint``."""
    found = {view.id: read_version(layout.generations(view)) for view in pipeline.views}
    return {view: version for view, version in found.items() if version is not None}


def read_version(place: Location) -> int | None:
    """Read a table's newest version; None if there is no table."""
    return Table.open(place).version if Table.exists(place) else None
