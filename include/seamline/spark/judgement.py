"""How a raw record becomes a row or is refused, written as one DuckDB query.

The first reason that applies is the record's reason, in this order: empty value, tombstone, not utf-8 (of
formats that are text), malformed json (csv, text, avro, protobuf), missing field, mistyped field, error in
a derived column, null event time, event time before start, event time in the future, event time
in the past, rule, error in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from seamline.lake.states import quoted
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.explode import Explode
from seamline.model.expressions import Expression
from seamline.model.intervals import EPOCH
from seamline.model.record import PROCESSING_TIME, SELECTED, SIDE
from seamline.spark.formats import Reader
from seamline.spark.formats.reader import literal

MICROSECOND = timedelta(microseconds=1)
Reason = tuple[str, str, str]


def judge_sql(pipeline: CompiledPipeline, reader: Reader, relation: str) -> str:
    """Write the query over ``relation`` (_value, what Kafka knows, the reader's columns) that judges records.

    It gives, row for row in the order of the relation, where it belongs, its columns, ``_event_time`` and ``_judged``:
    NULL for a row accepted, else [reason, detail].
    """
    record, source = pipeline.record, pipeline.definition.source
    parsed = [
        f"{reader.value(field, at)} AS {quoted(field.name)}"
        for at, field in enumerate(record.parsed.fields, 1)
    ]
    derived = [f"{made.duckdb} AS {quoted(field.name)}" for field, made in record.derived]
    timed = "_processing_time" if source.event_time == PROCESSING_TIME else quoted(source.event_time)
    event_time = f"{timed} AS _event_time"
    steps = [*reader.steps(), ", ".join(parsed), *derived, event_time, *flags(pipeline)]
    tried = reasons_of(pipeline, reader)
    reasons = " ".join(f"WHEN {when} THEN [{literal(reason)}, {detail}]" for when, reason, detail in tried)
    chain = [f"step{at} AS (SELECT *, {each} FROM {before})" for at, each, before in chained(steps, relation)]
    names = [quoted(field.name) for field in (*record.flags, *pipeline.schema.fields)]
    return f"""
        WITH {", ".join(chain)}
        SELECT {", ".join(names)}, _event_time,
            CASE {reasons} END AS _judged
        FROM step{len(steps)}
    """


def flags(pipeline: CompiledPipeline) -> Iterator[str]:
    """Write the side of a record, then whether it is selected."""
    record = pipeline.record
    if record.sides:
        cases = " ".join(f"WHEN {condition.duckdb} THEN {literal(name)}" for name, condition in record.sides)
        yield f"CASE {cases} END AS {SIDE}"
    if record.selective:
        stays = f"{SIDE} IS NULL" if record.sides else "true"
        chosen = f"({record.where.duckdb}) IS TRUE" if record.where else "true"
        yield f"({stays} AND {chosen}) AS {SELECTED}"


def chained(steps: list[str], relation: str) -> Iterator[tuple[int, str, str]]:
    """Number the steps from 1, each with the relation that it reads."""
    for at, step in enumerate(steps, 1):
        yield at, step, f"step{at - 1}" if at > 1 else relation


def reasons_of(pipeline: CompiledPipeline, reader: Reader) -> Iterator[Reason]:
    """List (condition, reason, SQL of the detail) in the order in which they are tried."""
    yield from value_reasons(reader)
    yield from field_reasons(pipeline, reader)
    for field, made in pipeline.record.derived:
        yield from errors_in(f"select {field.name}", "TRUE", made)
    for name in pipeline.definition.source.event_id:
        if name not in pipeline.required:
            yield f"{quoted(name)} IS NULL", f"missing field {name}", "''"
    start = (pipeline.grid.start - EPOCH) // MICROSECOND
    yield "_event_time IS NULL", "null event time", "''"
    yield f"epoch_us(_event_time) < {start}", "event time before start", "_event_time::VARCHAR"
    yield from bounds(pipeline)
    for rule, condition in pipeline.rules:
        sound = " AND ".join([f"({each}) IS NOT TRUE" for each in guards(condition)] or ["TRUE"])
        yield f"({condition.duckdb}) IS NOT TRUE AND {sound}", f"rule {rule.name}", literal(condition.text)
    for place, selected, expression in expressions_of(pipeline):
        yield from errors_in(place, selected, expression)
    for view in pipeline.views:
        if view.explode:
            for place, selected, expression in view_expressions(view):
                for when, reason, detail in errors_in(place, selected, expression):
                    yield in_some_item(view.explode, when), reason, detail


def in_some_item(explode: Explode, when: str) -> str:
    """Write whether a condition holds for an item of a record's array."""
    each = (
        f"list_transform({explode.array.duckdb}, lambda {quoted(explode.item.name)}: coalesce({when}, false))"
    )
    return f"coalesce(list_bool_or({each}), false)"


def errors_in(place: str, selected: str, expression: Expression) -> Iterator[Reason]:
    """List when an expression has no value on a record for which it is evaluated."""
    for guard in expression.guards:
        when = f"({selected}) AND ({guard.condition_duckdb}) IS TRUE"
        yield when, f"error in {place}", literal(guard.message)


def bounds(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List what is too far from the Kafka timestamp; the time of processing is as far as the reader is behind."""
    if pipeline.definition.source.event_time == PROCESSING_TIME:
        return
    kafka, said = "epoch_us(_kafka_timestamp)", "_event_time::VARCHAR"
    last = f"{kafka} + {pipeline.max_future // MICROSECOND}"
    yield f"epoch_us(_event_time) > {last}", "event time in the future", said
    if pipeline.max_past is not None:
        first = f"{kafka} - {pipeline.max_past // MICROSECOND}"
        yield f"epoch_us(_event_time) < {first}", "event time in the past", said


def value_reasons(reader: Reader) -> Iterator[Reason]:
    """List what can be wrong with a whole record."""
    if not reader.empty:
        yield "_value IS NOT NULL AND octet_length(_value) = 0", "empty value", "''"
    yield "_value IS NULL", "tombstone", "''"
    yield "_text IS NULL", "not utf-8", "''"
    for when, detail in reader.broken():
        yield when, f"malformed {reader.format.kind}", detail


def field_reasons(pipeline: CompiledPipeline, reader: Reader) -> Iterator[Reason]:
    """List what can be wrong with a field: missing ones first, then mistyped ones."""
    fields = list(enumerate(pipeline.record.parsed.fields, 1))
    for at, field in fields:
        if field.name in pipeline.required:
            null = field.name != pipeline.definition.source.event_time
            when, detail = reader.absent(field, at, null=null)
            yield when, f"missing field {field.name}", detail
    for at, field in fields:
        when, detail = reader.mistyped(field, at)
        yield when, f"mistyped field {field.name}", detail


def guards(expression: Expression) -> list[str]:
    """List the conditions under which an expression has no value."""
    return [guard.condition_duckdb for guard in expression.guards]


def expressions_of(pipeline: CompiledPipeline) -> Iterator[tuple[str, str, Expression]]:
    """List every expression with its place and the condition under which it is evaluated."""
    for rule, condition in pipeline.rules:
        yield f"rule {rule.name}", "TRUE", condition
    passed = "TRUE"
    for name, condition in pipeline.record.sides:
        yield f"side {name}", passed, condition
        passed = f"({passed}) AND ({condition.duckdb}) IS NOT TRUE"
    if pipeline.record.where:
        yield "where", passed, pipeline.record.where
    for view in pipeline.views:
        if view.explode is None:
            yield from view_expressions(view)


def view_expressions(view: CompiledView) -> Iterator[tuple[str, str, Expression]]:
    """List a view's expressions; its measures are evaluated where it selects."""
    if view.where:
        yield f"{view.name}.where", "TRUE", view.where
    selected = f"({view.where.duckdb}) IS TRUE" if view.where else "TRUE"
    for measure in view.measures:
        if measure.expression:
            yield f"{view.name}.{measure.name}", selected, measure.expression
