"""The events of a stream: from topics and tables to master, quarantine, slices and what is served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.live_versions import list_primary_views
from seamline.model.compile.record_rules import METADATA
from seamline.model.definition.sources import DeltaSource
from seamline.model.protocol.imported.table_rows import find_row
from seamline.model.protocol.offsets import OffsetRange, Vector
from seamline.plan.lineage.column_lineage import (
    Datasets,
    trace_answers,
    trace_master,
    trace_rules,
    trace_sources,
    trace_states,
)
from seamline.plan.lineage.dataset_names import TableNames, name_place, name_topic
from seamline.plan.lineage.lineage_events import (
    ColumnLineage,
    LineageEvent,
    ReadDataset,
    RunName,
    RunState,
    StreamFacts,
    WrittenDataset,
)
from seamline.plan.lineage.table_columns import list_answer_columns, list_columns, list_state_columns
from seamline.plan.lineage.told_offsets import Step


@dataclass(frozen=True)
class StreamNames:
    """What a stream's datasets are called."""

    namespace: str
    """The namespace of jobs."""
    brokers: str
    """The brokers, with commas between; empty where there are no topics."""
    topic_ids: Mapping[str, str]
    """The ids of lanes by the names of topics and tables."""
    tables: TableNames
    """The pipeline's tables."""


@dataclass(frozen=True)
class StreamSnapshot:
    """Where a stream stands between two epochs."""

    at: datetime
    """When, UTC."""
    vector: Vector
    """The next offset to read of each lane."""
    facts: StreamFacts
    """Its epoch, its watermark, and what is behind."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """The versions of the tables ``master`` and ``quarantine``, and of slices by ``name/fingerprint``."""
    lookups: Mapping[str, str] = field(default_factory=dict)
    """The versions of look-ups that rows are made with, by name."""


def name_stream_job(pipeline: str) -> str:
    """Name the job of a stream."""
    return f"seamline.{pipeline}.stream"


def name_sources(pipeline: CompiledPipeline, names: StreamNames) -> Datasets:
    """Name the topics or the table of each source."""
    return {
        each.name: (name_place(each.table),)
        if isinstance(each, DeltaSource)
        else tuple(name_topic(names.brokers, topic) for topic in each.topics)
        for each in pipeline.definition.sources
    }


def make_stream_event(
    pipeline: CompiledPipeline, names: StreamNames, step: Step, snapshot: StreamSnapshot
) -> LineageEvent:
    """Make the event of a step. Columns are told as a run begins and ends: what is told of a run adds up."""
    whole = step.state is not RunState.RUNNING
    return LineageEvent(
        step.state,
        snapshot.at,
        RunName(names.namespace, name_stream_job(pipeline.name), step.run),
        streaming=True,
        facts=snapshot.facts,
        inputs=tuple(list_read_datasets(pipeline, names, step.ranges, snapshot, whole=whole)),
        outputs=tuple(list_written_datasets(pipeline, names, snapshot, whole=whole)),
        error=step.error,
    )


def list_read_datasets(
    pipeline: CompiledPipeline,
    names: StreamNames,
    ranges: tuple[OffsetRange, ...],
    snapshot: StreamSnapshot,
    *,
    whole: bool,
) -> Iterator[ReadDataset]:
    """List what a stream reads: topics, tables, and the look-ups that rows are made with."""
    records = {each.source.name: each.record for each in pipeline.by_source}
    datasets = name_sources(pipeline, names)
    for source in pipeline.definition.sources:
        record = records[source.name]
        asked = [each for each in METADATA if each.name in record.metadata]
        columns = list_columns((*record.parsed.fields, *asked)) if whole else ()
        for topic, dataset in zip(source.topics, datasets[source.name], strict=True):
            own = tuple(each for each in ranges if each.lane.topic_id == names.topic_ids.get(topic))
            version = str(find_row(own[-1].end).version) if own and own[-1].lane.of_table else ""
            yield ReadDataset(dataset, columns, version, own)
    for lookup in pipeline.lookups:
        if table := names.tables.lookups.get(lookup.name):
            yield ReadDataset(table, version=snapshot.lookups.get(lookup.name, ""))


def list_written_datasets(
    pipeline: CompiledPipeline, names: StreamNames, snapshot: StreamSnapshot, *, whole: bool
) -> Iterator[WrittenDataset]:
    """List what a stream writes; what is served is brought up to date beside it, at versions of its own."""
    tables = names.tables
    sources = trace_sources(pipeline, name_sources(pipeline, names), tables.lookups) if whole else {}
    version = {name: str(at) for name, at in snapshot.versions.items()}
    nothing = ColumnLineage()
    yield WrittenDataset(
        tables.master,
        list_columns(pipeline.schema.fields) if whole else (),
        version.get("master", ""),
        trace_master(pipeline, sources) if whole else nothing,
    )
    yield WrittenDataset(
        tables.quarantine,
        version=version.get("quarantine", ""),
        lineage=ColumnLineage(whole=trace_rules(pipeline, sources)) if whole else nothing,
    )
    for view in pipeline.views:
        yield WrittenDataset(
            tables.slices[view.id],
            list_state_columns(view) if whole else (),
            version.get(view.id, ""),
            trace_states(pipeline, view, sources) if whole else nothing,
        )
    for view in list_primary_views(pipeline):
        yield WrittenDataset(
            tables.serving[view.name],
            list_answer_columns(view) if whole else (),
            lineage=trace_answers(pipeline, view, sources, tables.lookups) if whole else nothing,
        )
