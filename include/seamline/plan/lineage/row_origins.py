"""Where the columns of rows come from, step by step, as the definition is compiled: no text is parsed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from seamline.model.compile.compiled_join import CompiledJoin, JoinSide
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived
from seamline.model.compile.record_rules import METADATA, Record
from seamline.model.expressions import Expression
from seamline.plan.lineage.dataset_names import DatasetName
from seamline.plan.lineage.lineage_events import How, InputColumn

Origins = Mapping[str, tuple[InputColumn, ...]]
"""Columns of rows, each with the columns of datasets that it is made of."""


def follow(columns: Iterable[str], known: Origins, how: How, text: str = "") -> tuple[InputColumn, ...]:
    """Follow columns to what they are made of, where something is done with them; each input is named once.

    What is taken as it is has the step's own kind and text; an earlier step that computes keeps its own text.
    """
    found = (each for name in sorted(columns) for each in known.get(name, ()))
    made = (
        each if not each.how.direct else replace(each, how=join_steps(each.how, how), text=text or each.text)
        for each in found
    )
    return tuple(dict.fromkeys(made))


def join_steps(first: How, then: How) -> How:
    """Return what two steps after one another are: the later one, unless that takes a value as it is."""
    return first if then is How.IDENTITY else then


def trace_expression(expression: Expression, known: Origins) -> tuple[InputColumn, ...]:
    """Follow an expression's columns; one that only names a column takes it as it is."""
    if len(expression.columns) == 1 and expression.spark == f"`{next(iter(expression.columns))}`":
        return follow(expression.columns, known, How.IDENTITY)
    return follow(expression.columns, known, How.TRANSFORMATION, expression.text)


def read_as_they_are(dataset: DatasetName, names: Iterable[str]) -> Origins:
    """Return columns that are those of a dataset."""
    return {name: (InputColumn(dataset, name),) for name in names}


def trace_record(record: Record, known: Origins, tables: Mapping[str, DatasetName]) -> Origins:
    """Follow the columns of a source's rows to those of its records, ``known``, and of look-ups' ``tables``."""
    found = dict(known)
    if record.transform:
        given = follow(record.transform.given, found, How.TRANSFORMATION, record.transform.name)
        found |= {field.name: given for field in record.transform.schema.fields}
    for lookup in record.lookups:
        found |= trace_lookup(lookup, found, tables)
    for field, expression in record.derived:
        found[field.name] = trace_expression(expression, found)
    return {field.name: found.get(field.name, ()) for field in (*METADATA, *record.schema.fields)}


def trace_lookup(lookup: LookupJoin, known: Origins, tables: Mapping[str, DatasetName]) -> Origins:
    """Follow the columns that a look-up gives: to its table, where that has a name, and to what they are found by."""
    conditions = [made for _, made in lookup.keys]
    conditions += [each for each in (lookup.where, *lookup.conditions) if each]
    by = [part for each in conditions for part in follow(each.columns, known, How.JOIN, each.text)]
    table = tables.get(lookup.name)

    def of(column: str, how: How) -> tuple[InputColumn, ...]:
        own = [InputColumn(table, column, how)] if table else []
        return tuple(dict.fromkeys([*own, *by]))

    if lookup.every:
        return {lookup.every.name: of(lookup.columns[0][0], How.TRANSFORMATION)}
    return {field.name: of(column, How.IDENTITY) for column, field in lookup.columns}


def list_filters(record: Record, known: Origins) -> tuple[InputColumn, ...]:
    """List what decides whether a record of a source is counted by views at all."""
    conditions = [*(each for _, each in record.sides), *([record.where] if record.where else [])]
    return trace_conditions(conditions, known)


def list_rules(record: Record, known: Origins) -> tuple[InputColumn, ...]:
    """List what decides whether a record is refused."""
    return trace_conditions([each for _, each in record.rules], known)


def trace_conditions(
    conditions: Iterable[Expression | None], known: Origins, how: How = How.FILTER
) -> tuple[InputColumn, ...]:
    """Follow the columns of conditions."""
    found = (part for each in conditions if each for part in follow(each.columns, known, how, each.text))
    return tuple(dict.fromkeys(found))


def merge_origins(some: Iterable[Origins]) -> Origins:
    """Merge the columns of rows of several sources."""
    found: dict[str, tuple[InputColumn, ...]] = {}
    for each in some:
        for name, inputs in each.items():
            found[name] = tuple(dict.fromkeys([*found.get(name, ()), *inputs]))
    return found


def trace_view_rows(
    pipeline: CompiledPipeline, view: CompiledView, sources: Mapping[str, Origins]
) -> tuple[Origins, tuple[InputColumn, ...]]:
    """Follow the columns of the rows that a view counts, and what decides which rows these are.

    ``sources`` are the rows of each source by its name.
    """
    records = {each.source.name: each.record for each in pipeline.by_source}
    if view.derived:
        return trace_derived_rows(view.derived, view.side, records, sources)
    names = [name for name in records if not view.of or name in view.of]
    rows = dict(merge_origins(sources[name] for name in names))
    filters = [part for name in names for part in list_filters(records[name], sources[name])]
    if view.explode:
        items = follow(view.explode.array.columns, rows, How.TRANSFORMATION, view.explode.array.text)
        rows |= dict.fromkeys(view.explode.made, items)
    return rows, tuple(dict.fromkeys(filters))


def trace_derived_rows(
    derived: Derived, side: str, records: Mapping[str, Record], sources: Mapping[str, Origins]
) -> tuple[Origins, tuple[InputColumn, ...]]:
    """Follow the columns of derived rows; what a function emits may be made of all that it is given."""
    rows: dict[str, tuple[InputColumn, ...]] = {}
    whole: list[InputColumn] = []
    for each in derived.sides:
        known = sources.get(each.source, {})
        found = trace_side(each, known)
        whole += list_filters(records[each.source], known) if each.source in records else ()
        whole += trace_conditions([each.where], known)
        rows |= merge_origins([rows, {each.named(name): inputs for name, inputs in found.items()}])
    if isinstance(derived, CompiledJoin):
        for left, right, _ in derived.on:
            keys = [derived.left.named(left), derived.right.named(right)]
            whole += follow(keys, rows, How.JOIN)
        whole += trace_conditions([derived.where], rows, How.JOIN)
    elif isinstance(derived, CompiledProcess):
        given = follow(
            (field.name for field in derived.columns), rows, How.TRANSFORMATION, derived.function.name
        )
        keys = [field.name for field in derived.keys]
        rows = {name: rows.get(name, ()) for name in keys} | {
            field.name: given for field in derived.function.forms[side].fields
        }
    else:
        whole += follow((field.name for field in derived.changes.key), rows, How.FILTER)
    return rows, tuple(dict.fromkeys(whole))


def trace_side(side: JoinSide, known: Origins) -> Origins:
    """Follow the columns of one side of derived rows."""
    made = {name: trace_expression(each, known) for name, each in side.made.items()}
    return {each.name: made.get(each.name, known.get(each.name, ())) for each in side.columns}
