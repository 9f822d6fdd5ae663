"""How a raw record becomes a row or is refused, written as one DuckDB query.

The first reason that applies is the record's reason, in this order: empty value, tombstone, not utf-8,
malformed json, missing field, mistyped field, null event time, event time before start, event time in the
future, rule, error in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from seamline.lake.states import quoted
from seamline.model.compiled import CompiledPipeline
from seamline.model.expressions import Expression
from seamline.model.intervals import EPOCH
from seamline.model.schema import Field, Kind

MICROSECOND = timedelta(microseconds=1)
WHOLE = "('UBIGINT', 'BIGINT')"
NUMBER = "('UBIGINT', 'BIGINT', 'DOUBLE')"
DAY = r"\d{4}-\d{2}-\d{2}"
ISO = rf"{DAY}([T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,9}})?)?(Z|[+-]\d{{2}}(:?\d{{2}})?)?)?"
SHOWN = 120


def judge_sql(pipeline: CompiledPipeline, relation: str) -> str:
    """Write the query over ``relation`` (_value, _text, _kafka_timestamp) that judges every record.

    It gives, row for row in the order of the relation, the parsed columns, ``_event_time`` and ``_judged``:
    NULL for a row accepted, else [reason, detail].
    """
    fields = pipeline.schema.fields
    paths = ", ".join(text("$." + quoted(field.name)) for field in fields)
    columns = ", ".join(f"{value(field, at)} AS {quoted(field.name)}" for at, field in enumerate(fields, 1))
    tried = reasons_of(pipeline)
    reasons = " ".join(f"WHEN {when} THEN [{text(reason)}, {detail}]" for when, reason, detail in tried)
    return f"""
        WITH checked AS (SELECT *, CASE WHEN json_valid(_text) THEN _text END AS _json FROM {relation}),
        opened AS (
            SELECT *, json_type(_json) AS _root, json_type(_json, [{paths}]) AS _types,
                json_extract_string(_json, [{paths}]) AS _texts
            FROM checked
        ),
        typed AS (SELECT *, {columns} FROM opened),
        timed AS (SELECT *, {quoted(pipeline.definition.source.event_time)} AS _event_time FROM typed)
        SELECT {", ".join(quoted(field.name) for field in fields)}, _event_time,
            CASE {reasons} END AS _judged
        FROM timed
    """


def text(value: str) -> str:
    """Write a string literal."""
    return "'" + value.replace("'", "''") + "'"


def value(field: Field, at: int) -> str:
    """Write the typed value of a field; NULL where it is missing, null or of another JSON type."""
    type, found = f"_types[{at}]", f"_texts[{at}]"
    cast = f"TRY_CAST({found} AS {field.type.duckdb})"
    match field.type.kind:
        case Kind.STRING:
            return f"CASE WHEN {type} = 'VARCHAR' THEN {found} END"
        case Kind.INT | Kind.BIGINT:
            return f"CASE WHEN {type} IN {WHOLE} THEN {cast} END"
        case Kind.DOUBLE:
            return f"CASE WHEN {type} IN {NUMBER} AND isfinite({cast}) THEN {cast} END"
        case Kind.DECIMAL:
            exact = rf"-?\d+(\.\d{{0,{field.type.scale}}}0*)?"
            return f"CASE WHEN {type} IN {NUMBER} AND regexp_full_match({found}, '{exact}') THEN {cast} END"
        case Kind.BOOLEAN:
            return f"CASE WHEN {type} = 'BOOLEAN' THEN {found} = 'true' END"
        case Kind.DATE:
            return f"CASE WHEN {type} = 'VARCHAR' AND regexp_full_match({found}, '{DAY}') THEN {cast} END"
        case Kind.TIMESTAMP:
            return f"CASE WHEN {type} = 'VARCHAR' AND regexp_full_match({found}, '{ISO}') THEN {cast} END"
        case Kind.BINARY:
            return f"CASE WHEN {type} = 'VARCHAR' THEN TRY(from_base64({found})) END"


def reasons_of(pipeline: CompiledPipeline) -> Iterator[tuple[str, str, str]]:
    """List (condition, reason, SQL of the detail) in the order in which they are tried."""
    yield "_value IS NOT NULL AND octet_length(_value) = 0", "empty value", "''"
    yield "_value IS NULL", "tombstone", "''"
    yield "_text IS NULL", "not utf-8", "''"
    yield "_json IS NULL", "malformed json", f"left(_text, {SHOWN})"
    yield "_root <> 'OBJECT'", "malformed json", "'not an object: ' || _root"
    yield from field_reasons(pipeline)
    start = (pipeline.grid.start - EPOCH) // MICROSECOND
    late = f"epoch_us(_kafka_timestamp) + {pipeline.max_future // MICROSECOND}"
    yield "_event_time IS NULL", "null event time", "''"
    yield f"epoch_us(_event_time) < {start}", "event time before start", "_event_time::VARCHAR"
    yield f"epoch_us(_event_time) > {late}", "event time in the future", "_event_time::VARCHAR"
    for rule, condition in pipeline.rules:
        sound = " AND ".join([f"({each}) IS NOT TRUE" for each in guards(condition)] or ["TRUE"])
        yield f"({condition.duckdb}) IS NOT TRUE AND {sound}", f"rule {rule.name}", text(condition.text)
    for place, selected, expression in expressions_of(pipeline):
        for guard in expression.guards:
            when = f"({selected}) AND ({guard.condition_duckdb}) IS TRUE"
            yield when, f"error in {place}", text(guard.message)


def field_reasons(pipeline: CompiledPipeline) -> Iterator[tuple[str, str, str]]:
    """List what can be wrong with a field: missing ones first, then mistyped ones."""
    fields = list(enumerate(pipeline.schema.fields, 1))
    for at, field in fields:
        if field.name in pipeline.required:
            null = "" if field.name == pipeline.definition.source.event_time else f" OR _types[{at}] = 'NULL'"
            yield f"_types[{at}] IS NULL{null}", f"missing field {field.name}", f"coalesce(_types[{at}], '')"
    for at, field in fields:
        wrong = f"{quoted(field.name)} IS NULL AND _types[{at}] <> 'NULL'"
        said = f"_types[{at}] || ' ' || left(_texts[{at}], {SHOWN}) || ' is no {field.type.spark}'"
        yield wrong, f"mistyped field {field.name}", said


def guards(expression: Expression) -> list[str]:
    """List the conditions under which an expression has no value."""
    return [guard.condition_duckdb for guard in expression.guards]


def expressions_of(pipeline: CompiledPipeline) -> Iterator[tuple[str, str, Expression]]:
    """List every expression with its place and the condition under which it is evaluated."""
    for rule, condition in pipeline.rules:
        yield f"rule {rule.name}", "TRUE", condition
    for view in pipeline.views:
        if view.where:
            yield f"{view.name}.where", "TRUE", view.where
        selected = f"({view.where.duckdb}) IS TRUE" if view.where else "TRUE"
        for measure in view.measures:
            if measure.expression:
                yield f"{view.name}.{measure.name}", selected, measure.expression
