"""What is told of a run, as facts; the room ``lineage`` makes the client's events of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum

from seamline.model.errors import SeamlineError
from seamline.model.protocol.offsets import OffsetRange
from seamline.plan.lineage.dataset_names import DatasetName


class RunState(StrEnum):
    """What has become of a run."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"
    FAIL = "FAIL"


class How(Enum):
    """What becomes of a column in another: the type and the subtype of a transformation."""

    IDENTITY = ("DIRECT", "IDENTITY")
    TRANSFORMATION = ("DIRECT", "TRANSFORMATION")
    AGGREGATION = ("DIRECT", "AGGREGATION")
    FILTER = ("INDIRECT", "FILTER")
    JOIN = ("INDIRECT", "JOIN")
    GROUP_BY = ("INDIRECT", "GROUP_BY")
    WINDOW = ("INDIRECT", "WINDOW")

    @property
    def direct(self) -> bool:
        """Return whether values are made of the column; otherwise it decides which rows count, and where."""
        return self.value[0] == "DIRECT"


@dataclass(frozen=True)
class InputColumn:
    """A column that another is made of, or depends on."""

    dataset: DatasetName
    """Whose column it is."""
    field: str
    """Its name."""
    how: How = How.IDENTITY
    """What is done with it."""
    text: str = ""
    """The expression or the measure that does it; empty where a value is taken as it is."""


@dataclass(frozen=True)
class ColumnLineage:
    """Where a dataset's columns come from."""

    fields: Mapping[str, tuple[InputColumn, ...]] = field(default_factory=dict)
    """By column: what its values are made of."""
    whole: tuple[InputColumn, ...] = ()
    """What decides which rows there are."""


@dataclass(frozen=True)
class Column:
    """A column of a dataset."""

    name: str
    """Its name."""
    type: str
    """Its type, as Spark spells it."""


@dataclass(frozen=True)
class Assertion:
    """A check of rows that were read."""

    name: str
    """The check."""
    passed: bool
    """Whether it is green."""


@dataclass(frozen=True)
class ReadDataset:
    """What a run reads."""

    dataset: DatasetName
    """Its name."""
    columns: tuple[Column, ...] = ()
    """The columns that are read; none where they are not known."""
    version: str = ""
    """The version of a table; empty for a topic."""
    ranges: tuple[OffsetRange, ...] = ()
    """The offsets that were read since the event before; an empty range says where reading begins."""
    assertions: tuple[Assertion, ...] = ()
    """Checks of what was read."""


@dataclass(frozen=True)
class WrittenDataset:
    """What a run writes."""

    dataset: DatasetName
    """Its name."""
    columns: tuple[Column, ...] = ()
    """Its columns."""
    version: str = ""
    """The table's version after the last commit; empty while there is none."""
    lineage: ColumnLineage = ColumnLineage()
    """Where its columns come from."""
    rows: int | None = None
    """Rows that the run wrote; None where that is not counted."""


@dataclass(frozen=True)
class RunName:
    """A run of a job."""

    namespace: str
    """Where the job is."""
    job: str
    """The job's name there."""
    id: str
    """The run's id, a UUID."""


@dataclass(frozen=True)
class ParentRuns:
    """The runs of Airflow that have started a run."""

    task: RunName
    """The attempt at a task."""
    dag: RunName
    """The run of its DAG."""


@dataclass(frozen=True)
class StreamFacts:
    """What is known of a stream beside its datasets."""

    pipeline: str
    """The pipeline's name."""
    token: int
    """The fencing token."""
    epoch: int
    """The last epoch that the master holds, -1 for none."""
    watermark: str = ""
    """The watermark; empty before the first."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """The frontiers of views that are behind, by ``view/fingerprint``."""


@dataclass(frozen=True)
class BuildFacts:
    """What is known of a batch run beside its datasets."""

    pipeline: str
    """The pipeline's name."""
    airflow_run: str
    """The id of Airflow's run."""
    cut: int
    """The last epoch that was read, -1 while nothing was."""
    intervals: tuple[str, ...] = ()
    """The ids of the newest intervals, at most MOST_NAMED."""
    count: int = 0
    """How many intervals there are."""
    reason: str = ""
    """Why they are built."""


@dataclass(frozen=True)
class SinkRunFacts:
    """What is known of a sink beside its datasets."""

    pipeline: str
    """The pipeline's name."""
    sink: str
    """The sink's name."""
    before: int
    """The version of the serving table, of dead letters the epoch, that was told last; -1 for none."""
    version: int
    """The one that the target shows."""
    changes: int
    """Changes that the process has sent."""


MOST_NAMED = 50
"""How many intervals an event names."""


@dataclass(frozen=True)
class LineageEvent:
    """One event."""

    state: RunState
    """What has become of the run."""
    at: datetime
    """When."""
    run: RunName
    """The run."""
    streaming: bool
    """Whether the run goes on until it is stopped; otherwise it ends by itself."""
    facts: StreamFacts | BuildFacts | SinkRunFacts
    """What is known beside."""
    inputs: tuple[ReadDataset, ...] = ()
    """What it reads."""
    outputs: tuple[WrittenDataset, ...] = ()
    """What it writes."""
    parents: ParentRuns | None = None
    """What has started it; None where nobody says."""
    error: str = ""
    """Why it failed; empty where it did not."""


def spell_error(error: BaseException) -> str:
    """Spell an error for an event, or for a log: its kind, and the first line of what it says."""
    said = error.message if isinstance(error, SeamlineError) else str(error)
    return f"{type(error).__name__}: {said.partition(chr(10))[0][:500]}"
