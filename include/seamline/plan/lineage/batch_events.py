"""The events of a batch run: from the master to generations, and from those to what is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.live_versions import list_primary_views
from seamline.model.protocol.certificate_checks import Certificate
from seamline.plan.lineage.column_lineage import read_master, trace_published, trace_states
from seamline.plan.lineage.dataset_names import TableNames
from seamline.plan.lineage.lineage_events import (
    MOST_NAMED,
    Assertion,
    BuildFacts,
    LineageEvent,
    ParentRuns,
    ReadDataset,
    RunName,
    RunState,
    WrittenDataset,
)
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.table_columns import list_answer_columns, list_columns, list_state_columns


@dataclass(frozen=True)
class BatchRun:
    """A task of a batch run as its events name it."""

    run: RunName
    """The run of our job."""
    parents: ParentRuns | None
    """The attempt at the task, and the run of its DAG; None where a person has done it by hand."""
    pipeline: CompiledPipeline
    """The pipeline, with the view versions that are built."""
    tables: TableNames
    """Its tables."""


@dataclass(frozen=True)
class BatchOutcome:
    """What is known of a task of a batch run when an event is made."""

    at: datetime
    """When, UTC."""
    state: RunState
    """What has become of the run."""
    facts: BuildFacts
    """The run's intervals and its cut."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """The versions of ``master``, and of the table that a view version is in, by ``name/fingerprint``."""
    served: Mapping[str, int] = field(default_factory=dict)
    """The versions of serving tables, by the view's name."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The rows that were written, by ``name/fingerprint``."""
    certificates: Sequence[Certificate] = ()
    """What was found of the generations."""
    error: str = ""
    """Why the run failed."""


def name_batch_run(namespace: str, pipeline: str, what: str, moment: datetime, attempt: str) -> RunName:
    """Name the run of a job, ``build`` or ``publish``, in one ``attempt`` at its task."""
    job = f"seamline.{pipeline}.{what}"
    return RunName(namespace, job, str(make_run_id(moment, f"{namespace}.{job}.{attempt}")))


def name_parents(
    namespace: str, dag: str, task: str, moment: datetime, *, attempt: int, mapped: int, cleared: int
) -> ParentRuns:
    """Name the attempt at a task and the run of its DAG as Airflow's OpenLineage provider names them."""
    run = str(make_run_id(moment, f"{namespace}.{dag}.{task}.{attempt}.{mapped}"))
    root = str(make_run_id(moment, f"{namespace}.{dag}.{cleared}"))
    return ParentRuns(RunName(namespace, f"{dag}.{task}", run), RunName(namespace, dag, root))


def describe_intervals(
    pipeline: str, airflow_run: str, cut: int, intervals: Iterable[str], reason: str = ""
) -> BuildFacts:
    """Describe a run; the newest of its intervals are named."""
    found = sorted({*intervals})
    return BuildFacts(pipeline, airflow_run, cut, tuple(found[-MOST_NAMED:]), len(found), reason)


def make_build_event(batch: BatchRun, outcome: BatchOutcome) -> LineageEvent:
    """Make an event of a build, which reads the master and writes generations."""
    pipeline, tables = batch.pipeline, batch.tables
    sources = read_master(pipeline, tables.master)
    version = {name: str(at) for name, at in outcome.versions.items()}
    return make_event(
        batch,
        outcome,
        [ReadDataset(tables.master, list_columns(pipeline.schema.fields), version.get("master", ""))],
        [
            WrittenDataset(
                tables.generations[view.id],
                list_state_columns(view),
                version.get(view.id, ""),
                trace_states(pipeline, view, sources),
                outcome.rows.get(view.id),
            )
            for view in pipeline.views
        ],
    )


def make_publish_event(batch: BatchRun, outcome: BatchOutcome) -> LineageEvent:
    """Make an event of a publication, after which a view is served with the generations."""
    tables = batch.tables
    return make_event(
        batch,
        outcome,
        [
            ReadDataset(
                tables.generations[view.id],
                list_state_columns(view),
                str(outcome.versions.get(view.id, "")),
                assertions=list_assertions(view, outcome.certificates),
            )
            for view in batch.pipeline.views
        ],
        [
            WrittenDataset(
                tables.serving[view.name],
                list_answer_columns(view),
                str(outcome.served.get(view.name, "")),
                trace_published(view, tables.generations[view.id]),
            )
            for view in list_primary_views(batch.pipeline)
        ],
    )


def make_event(
    batch: BatchRun,
    outcome: BatchOutcome,
    inputs: Iterable[ReadDataset],
    outputs: Iterable[WrittenDataset],
) -> LineageEvent:
    """Make an event of a batch run."""
    return LineageEvent(
        outcome.state,
        outcome.at,
        batch.run,
        streaming=False,
        facts=outcome.facts,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        parents=batch.parents,
        error=outcome.error,
    )


def list_assertions(view: CompiledView, certificates: Iterable[Certificate]) -> tuple[Assertion, ...]:
    """List the checks of a view's certificates, each green if it is in all intervals."""
    found: dict[str, bool] = {}
    for each in certificates:
        if (each.view, each.fingerprint) == (view.name, view.fingerprint):
            for check in each.checks:
                found[check.name] = found.get(check.name, True) and check.passed
    return tuple(Assertion(name, passed) for name, passed in found.items())
