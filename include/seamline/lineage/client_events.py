"""Our events as those of the official client."""

from __future__ import annotations

from collections.abc import Iterable

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
)

from seamline.lineage.own_facets import (
    PRODUCER,
    OffsetRangeOfPartition,
    SeamlineBatchRunFacet,
    SeamlineOffsetsInputDatasetFacet,
    SeamlineSinkRunFacet,
    SeamlineStreamRunFacet,
)
from seamline.plan.lineage.lineage_events import (
    Column,
    ColumnLineage,
    InputColumn,
    LineageEvent,
    ParentRuns,
    ReadDataset,
    SinkRunFacts,
    StreamFacts,
    WrittenDataset,
)
from seamline.version import VERSION


def make_client_event(event: LineageEvent) -> RunEvent:
    """Make the client's event; it checks what of it has a form."""
    return RunEvent(
        eventType=RunState(event.state.value),
        eventTime=event.at.isoformat(),
        run=Run(runId=event.run.id, facets=make_run_facets(event)),
        job=Job(namespace=event.run.namespace, name=event.run.job, facets=make_job_facets(event)),
        inputs=[make_input(each) for each in event.inputs],
        outputs=[make_output(each) for each in event.outputs],
        producer=PRODUCER,
    )


def make_job_facets(event: LineageEvent) -> dict[str, JobFacet]:
    """Say of which kind a job is: what is told of the run of a stream adds up."""
    pattern = job_type_job.EmissionPattern("PERIODIC", "ACCUMULATIVE") if event.streaming else None
    kind = "STREAMING" if event.streaming else "BATCH"
    return {
        "jobType": job_type_job.JobTypeJobFacet(
            kind, "SEAMLINE", "JOB" if event.streaming else "TASK", pattern, producer=PRODUCER
        )
    }


def make_run_facets(event: LineageEvent) -> dict[str, RunFacet]:
    """Say what is known of a run."""
    engine = processing_engine_run.ProcessingEngineRunFacet(VERSION, "Seamline", producer=PRODUCER)
    found: dict[str, RunFacet] = {"processing_engine": engine, **make_own_facet(event)}
    if event.parents:
        found["parent"] = make_parent_facet(event.parents)
    if event.error:
        found["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            event.error, "PYTHON", producer=PRODUCER
        )
    return found


def make_own_facet(event: LineageEvent) -> dict[str, RunFacet]:
    """Say what only we know."""
    facts = event.facts
    if isinstance(facts, StreamFacts):
        stream = SeamlineStreamRunFacet(
            facts.pipeline,
            facts.token,
            facts.epoch,
            dict(facts.behind),
            facts.watermark or None,
            producer=PRODUCER,
        )
        return {"seamline_stream": stream}
    if isinstance(facts, SinkRunFacts):
        sink = SeamlineSinkRunFacet(
            facts.pipeline, facts.sink, facts.before, facts.version, facts.changes, producer=PRODUCER
        )
        return {"seamline_sink": sink}
    batch = SeamlineBatchRunFacet(
        facts.pipeline,
        facts.airflow_run,
        facts.cut,
        list(facts.intervals),
        facts.count,
        facts.reason,
        producer=PRODUCER,
    )
    return {"seamline_batch": batch}


def make_parent_facet(parents: ParentRuns) -> parent_run.ParentRunFacet:
    """Name the task's run that has started ours, and the DAG's."""
    task, dag = parents.task, parents.dag
    return parent_run.ParentRunFacet(
        run=parent_run.Run(task.id),
        job=parent_run.Job(task.namespace, task.job),
        root=parent_run.Root(parent_run.RootRun(dag.id), parent_run.RootJob(dag.namespace, dag.job)),
        producer=PRODUCER,
    )


def make_input(read: ReadDataset) -> InputDataset:
    """Make a dataset that is read."""
    own: dict[str, InputDatasetFacet] = {}
    if read.ranges:
        own["seamline_offsets"] = SeamlineOffsetsInputDatasetFacet(
            [
                OffsetRangeOfPartition(each.lane.topic_id, each.lane.partition, each.start, each.end)
                for each in read.ranges
            ],
            sum(map(len, read.ranges)),
            producer=PRODUCER,
        )
    if read.assertions:
        own["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            [
                data_quality_assertions_dataset.Assertion(each.name, each.passed, severity="error")
                for each in read.assertions
            ],
            producer=PRODUCER,
        )
    facets = make_dataset_facets(read.columns, read.version)
    return InputDataset(read.dataset.namespace, read.dataset.name, inputFacets=own, facets=facets)


def make_output(written: WrittenDataset) -> OutputDataset:
    """Make a dataset that is written."""
    own: dict[str, OutputDatasetFacet] = {}
    if written.rows is not None:
        own["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            written.rows, producer=PRODUCER
        )
    facets = make_dataset_facets(written.columns, written.version)
    if written.lineage.fields or written.lineage.whole:
        facets["columnLineage"] = make_column_lineage(written.lineage)
    return OutputDataset(written.dataset.namespace, written.dataset.name, outputFacets=own, facets=facets)


def make_dataset_facets(columns: Iterable[Column], version: str) -> dict[str, DatasetFacet]:
    """Say which columns a dataset has, and which version of it is meant."""
    found: dict[str, DatasetFacet] = {}
    if fields := [schema_dataset.SchemaDatasetFacetFields(each.name, each.type) for each in columns]:
        found["schema"] = schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)
    if version:
        found["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(version, producer=PRODUCER)
    return found


def make_column_lineage(lineage: ColumnLineage) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Say where columns come from."""
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            name: column_lineage_dataset.Fields(merge_inputs(inputs))
            for name, inputs in lineage.fields.items()
        },
        merge_inputs(lineage.whole),
        producer=PRODUCER,
    )


def merge_inputs(inputs: Iterable[InputColumn]) -> list[column_lineage_dataset.InputField]:
    """Name each column once, with all that is done with it."""
    found: dict[tuple[str, str, str], column_lineage_dataset.InputField] = {}
    for each in inputs:
        at = (each.dataset.namespace, each.dataset.name, each.field)
        field = found.setdefault(at, column_lineage_dataset.InputField(*at, transformations=[]))
        type, subtype = each.how.value
        made = column_lineage_dataset.Transformation(type, subtype, each.text, masking=False)
        assert field.transformations is not None
        field.transformations.append(made)
    return [*found.values()]
