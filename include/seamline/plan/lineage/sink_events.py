"""The events of a sink: from a serving table, or the quarantine, to another system."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from seamline.model.protocol.offsets import Lane, Vector
from seamline.plan.lineage.dataset_names import DatasetName
from seamline.plan.lineage.lineage_events import (
    Column,
    ColumnLineage,
    InputColumn,
    LineageEvent,
    ReadDataset,
    RunName,
    RunState,
    SinkRunFacts,
    WrittenDataset,
)
from seamline.plan.lineage.told_offsets import Step

VERSIONS = Lane("versions", 0)
"""A sink sends versions as a stream reads offsets: each is told once, by the same rules."""


@dataclass(frozen=True)
class SinkNames:
    """What a sink and its datasets are called."""

    namespace: str
    """The namespace of jobs."""
    pipeline: str
    """The pipeline's name."""
    sink: str
    """The sink's name."""
    source: DatasetName
    """What is sent: a serving table, or the quarantine."""
    target: DatasetName
    """Where it is sent."""
    versioned: bool
    """Whether versions are those of the table that is sent; of dead letters they are epochs."""


@dataclass(frozen=True)
class SinkSnapshot:
    """Where a sink stands."""

    at: datetime
    """When, UTC."""
    version: int
    """The version, or the epoch, that the target shows; -1 for none."""
    changes: int
    """Changes that the process has sent."""
    columns: tuple[Column, ...] = ()
    """The columns that are sent now; none of dead letters, which are records as they were read."""

    @property
    def vector(self) -> Vector:
        """The next version to send."""
        return {VERSIONS: self.version + 1}


def name_sink_job(pipeline: str, sink: str) -> str:
    """Name the job of a sink."""
    return f"seamline.{pipeline}.sink.{sink}"


def make_sink_event(names: SinkNames, step: Step, snapshot: SinkSnapshot, *, whole: bool) -> LineageEvent:
    """Make the event of a step; ``whole`` tells the columns, too: what is told of a run adds up."""
    columns = snapshot.columns if whole else ()
    before = min((each.start for each in step.ranges), default=snapshot.version + 1) - 1
    return LineageEvent(
        step.state,
        snapshot.at,
        RunName(names.namespace, name_sink_job(names.pipeline, names.sink), step.run),
        streaming=True,
        facts=SinkRunFacts(names.pipeline, names.sink, before, snapshot.version, snapshot.changes),
        inputs=(
            ReadDataset(
                names.source,
                columns,
                str(snapshot.version) if names.versioned and snapshot.version >= 0 else "",
            ),
        ),
        outputs=(
            WrittenDataset(
                names.target,
                columns,
                lineage=ColumnLineage(
                    {each.name: (InputColumn(names.source, each.name),) for each in columns}
                ),
            ),
        ),
        error=step.error,
    )


def is_whole(step: Step) -> bool:
    """Return whether an event tells all columns whatever was told before: the first and the last of a run."""
    return step.state is not RunState.RUNNING
