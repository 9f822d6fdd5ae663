"""Column lineage of the tables of a pipeline: master and quarantine, states, and what is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seamline.model.compile.compiled_measure import CompiledMeasure
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import METADATA
from seamline.plan.lineage.dataset_names import DatasetName
from seamline.plan.lineage.lineage_events import ColumnLineage, How, InputColumn
from seamline.plan.lineage.row_origins import (
    Origins,
    follow,
    list_rules,
    merge_origins,
    read_as_they_are,
    trace_conditions,
    trace_lookup,
    trace_record,
    trace_view_rows,
)

Datasets = Mapping[str, tuple[DatasetName, ...]]
"""The topics or the table of each source, by its name; empty for a source without one."""


def trace_sources(
    pipeline: CompiledPipeline, datasets: Datasets, tables: Mapping[str, DatasetName]
) -> dict[str, Origins]:
    """Follow the columns of each source's rows to its topics, and to the look-ups' ``tables``."""
    found = {}
    for each in pipeline.by_source:
        names = [field.name for field in (*METADATA, *each.record.parsed.fields)]
        read = merge_origins(read_as_they_are(dataset, names) for dataset in datasets[each.source.name])
        found[each.source.name] = trace_record(each.record, read, tables)
    return found


def read_master(pipeline: CompiledPipeline, master: DatasetName) -> dict[str, Origins]:
    """Return each source's rows as the master has them."""
    names = [field.name for field in (*METADATA, *pipeline.schema.fields)]
    return {each.source.name: read_as_they_are(master, names) for each in pipeline.by_source}


def trace_master(pipeline: CompiledPipeline, sources: Mapping[str, Origins]) -> ColumnLineage:
    """Return where the master's columns come from; rules decide which records are in it."""
    rows = merge_origins(sources.values())
    own = {field.name for field in pipeline.schema.fields}
    return ColumnLineage(
        {name: inputs for name, inputs in rows.items() if name in own and inputs},
        trace_rules(pipeline, sources),
    )


def trace_rules(pipeline: CompiledPipeline, sources: Mapping[str, Origins]) -> tuple[InputColumn, ...]:
    """List what decides whether a record is in the master or in quarantine."""
    found = (
        part for each in pipeline.by_source for part in list_rules(each.record, sources[each.source.name])
    )
    return tuple(dict.fromkeys(found))


def trace_states(
    pipeline: CompiledPipeline, view: CompiledView, sources: Mapping[str, Origins]
) -> ColumnLineage:
    """Return where the columns of a view's slices or generations come from."""
    rows, whole = trace_grouping(pipeline, view, sources)
    fields = trace_keys(view, rows)
    for measure in view.states:
        fields |= dict.fromkeys((part.name for part in measure.parts), trace_measures([measure], rows))
    return ColumnLineage({name: inputs for name, inputs in fields.items() if inputs}, whole)


def trace_answers(
    pipeline: CompiledPipeline,
    view: CompiledView,
    sources: Mapping[str, Origins],
    tables: Mapping[str, DatasetName],
) -> ColumnLineage:
    """Return where the columns of a view's serving table come from, those of look-ups beside the keys too."""
    rows, whole = trace_grouping(pipeline, view, sources)
    fields = trace_keys(view, rows)
    for each in view.decorations:
        fields |= trace_lookup(each, rows, tables)
    fields |= {each.name: trace_measures(each.sources, rows) for each in view.measures}
    return ColumnLineage({name: inputs for name, inputs in fields.items() if inputs}, whole)


def trace_published(view: CompiledView, states: DatasetName) -> ColumnLineage:
    """Return where the columns of a serving table come from in terms of the generations that are published."""
    names = [*(key.name for key in view.keys), *(part.name for part in view.parts)]
    known = read_as_they_are(states, names)
    fields = {key.name: known[key.name] for key in view.keys}
    for each in view.measures:
        parts = (part.name for source in each.sources for part in source.parts)
        fields[each.name] = follow(parts, known, How.AGGREGATION, spell_measure(each))
    return ColumnLineage(fields)


def trace_keys(view: CompiledView, rows: Origins) -> dict[str, tuple[InputColumn, ...]]:
    """Follow a view's keys; a number of a window comes from no column."""
    return {key.name: rows.get(key.name, ()) for key in view.keys}


def trace_measures(measures: Iterable[CompiledMeasure], rows: Origins) -> tuple[InputColumn, ...]:
    """Follow the columns that measures sum up."""
    found = (
        part
        for each in measures
        if each.expression
        for part in follow(each.expression.columns, rows, How.AGGREGATION, spell_measure(each))
    )
    return tuple(dict.fromkeys(found))


def spell_measure(measure: CompiledMeasure) -> str:
    """Spell a measure as its author has."""
    declared = measure.measure
    if not measure.expression:
        return declared.kind
    where = f", where={declared.where}" if declared.where else ""
    return f"{declared.kind}({declared.of}{where})"


def trace_grouping(
    pipeline: CompiledPipeline, view: CompiledView, sources: Mapping[str, Origins]
) -> tuple[Origins, tuple[InputColumn, ...]]:
    """Follow the rows of a view, and what decides which of them a window of a key counts."""
    rows, whole = trace_view_rows(pipeline, view, sources)
    where = trace_conditions([view.where], rows)
    keys = follow((key.name for key in view.keys), rows, How.GROUP_BY)
    times = [
        part
        for each in pipeline.by_source
        if not view.of or each.source.name in view.of
        for part in follow([each.source.event_time], sources[each.source.name], How.WINDOW)
    ]
    return rows, tuple(dict.fromkeys([*whole, *where, *keys, *times]))
