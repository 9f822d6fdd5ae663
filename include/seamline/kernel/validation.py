"""How a raw record becomes a row or is refused, written as one DuckDB query.

Of the records within bounds (``record_bounds``) the first reason that applies is the record's reason, in this order:
empty value, tombstone, not utf-8 (of formats that are text), unknown schema, incompatible schema (both where a registry
has them), malformed json (csv, text, avro, protobuf), missing field, mistyped field, error in transform, error in a
look-up's key, error in a derived column, null event time, event time before start, event time in the future, event time
in the past, rule, error in an expression. Then what a view makes of the record's items has its bound, and only what is
within it is looked at item by item: error in an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import chain

from seamline.kernel.formats import Reader
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.lookup_joins import absent_columns_sql, lookup_steps, trouble_name, trouble_sql
from seamline.lake.engine.query_steps import QueryStep, chain_steps_sql
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.explode import Explode
from seamline.model.compile.record_rules import DUPLICATE, PROCESSING_TIME, SELECTED, SIDE, SOURCE
from seamline.model.expressions import Expression
from seamline.model.time.intervals import EPOCH, LAST

MICROSECOND = timedelta(microseconds=1)
PLACES = ("_topic", "_partition", "_offset")
REFUSED, TAKEN, REPEATED = "_refused", "_taken", "_repeated"
ROW = "_row"
"""The number of a record in its relation, where there are look-ups: their joins may change the order."""
Reason = tuple[str, str, str]


def validation_sql(pipeline: CompiledPipeline, reader: Reader, relation: str) -> str:
    """Write the query over ``relation`` (_value, what Kafka knows, the reader's columns) that validates records.

    It returns, row by row, the place, the columns, ``_event_time`` and ``_judged``: NULL for a row accepted, else
    [reason, detail]. Rows are in the order of the relation, or have its ``ROW``.
    """
    steps = [*early_steps(pipeline, reader), *later_steps(pipeline)]
    verdict = (
        f"coalesce({early_verdict(pipeline, reader)}, CASE {reason_cases_sql(later_reasons(pipeline))} END)"
    )
    return chain_steps_sql(steps, relation, row_columns(pipeline), f"{verdict} AS _judged")


def parse_sql(pipeline: CompiledPipeline, reader: Reader, relation: str) -> str:
    """Write the first half of ``validation_sql``, where the user's own step stands between.

    It returns what Kafka knows, the parsed columns, and ``_refused``: NULL, or [reason, detail].
    """
    known = {*PLACES, "_kafka_timestamp", "_processing_time"} | pipeline.record.metadata
    known |= {REPEATED} if pipeline.record.dedup else set()
    columns = [*sorted(known), *(quote_identifier(field.name) for field in pipeline.record.parsed.fields)]
    steps = early_steps(pipeline, reader)
    return chain_steps_sql(steps, relation, columns, f"{early_verdict(pipeline, reader)} AS {REFUSED}")


def validate_transformed_sql(pipeline: CompiledPipeline, relation: str) -> str:
    """Write the second half: over what ``parse_sql`` returned, with the user's columns and ``_taken`` beside it."""
    whens = f"WHEN {REFUSED} IS NOT NULL THEN {REFUSED} {reason_cases_sql(later_reasons(pipeline))}"
    return chain_steps_sql(
        later_steps(pipeline), relation, row_columns(pipeline), f"CASE {whens} END AS _judged"
    )


def items_sql(pipeline: CompiledPipeline, relation: str) -> str:
    """Write the query over rows within bounds that returns, row for row, [reason, detail] of an item's error.

    NULL where there is none; "" where no view can fail on an item.
    """
    whens = reason_cases_sql(restrict_to_selected(pipeline, item_reasons(pipeline)))
    return whens and f"SELECT CASE {whens} END AS _judged FROM {relation}"


def reason_cases_sql(*reasons: Iterable[Reason]) -> str:
    """Write the branches of a CASE that returns [reason, detail] of the first that applies."""
    return " ".join(
        f"WHEN {when} THEN [{quote_literal(reason)}, {detail}]" for when, reason, detail in chain(*reasons)
    )


def early_verdict(pipeline: CompiledPipeline, reader: Reader) -> str:
    """Write [reason, detail] of what is wrong with a record's value or fields, or NULL.

    A record all of whose columns have a value is looked at no further, as most are: reasons are many.
    """
    fields = list(enumerate(pipeline.record.parsed.fields, 1))
    amiss = [f"{quote_identifier(field.name)} IS NULL" for _, field in fields]
    # A part that is wrong leaves the column around it a value.
    amiss += [f"({reader.mistyped_sql(field, at)[0]}) IS TRUE" for at, field in fields if field.type.nested]
    whens = reason_cases_sql(value_reasons(reader), field_reasons(pipeline, reader))
    return f"CASE WHEN {' OR '.join(amiss)} THEN CASE {whens} END END"


def early_steps(pipeline: CompiledPipeline, reader: Reader) -> Iterator[QueryStep]:
    """List the reader's steps and that of the parsed columns."""
    for step in reader.steps():
        yield QueryStep(step)
    fields = enumerate(pipeline.record.parsed.fields, 1)
    yield QueryStep(
        ", ".join(f"{reader.value_sql(field, at)} AS {quote_identifier(field.name)}" for at, field in fields)
    )


def later_steps(pipeline: CompiledPipeline) -> Iterator[QueryStep]:
    """List the steps that follow the parsed columns."""
    timed = pipeline.source.event_time
    if absent := absent_columns_sql(pipeline.record.lookups, pipeline.record.schema):
        yield QueryStep(absent)
    for join in pipeline.record.lookups:
        yield from lookup_steps(join, ROW)
    for field, made in pipeline.record.derived:
        yield QueryStep(f"{made.duckdb} AS {quote_identifier(field.name)}")
    moment = "_processing_time" if timed == PROCESSING_TIME else quote_identifier(timed)
    if deletion := pipeline.record.deletion:
        # A tombstone has no column but its key.
        moment = f"coalesce({moment}, CASE WHEN {deletion.condition_duckdb} THEN _kafka_timestamp END)"
    yield QueryStep(f"{moment} AS _event_time")
    for flag in record_flags_sql(pipeline):
        yield QueryStep(flag)


def row_columns(pipeline: CompiledPipeline) -> list[str]:
    """List the columns of a row, its number where a join may have changed the order, and ``TAKEN`` for its items."""
    own = [*pipeline.record.flags, *pipeline.schema.fields]
    numbered = [ROW] if pipeline.record.lookups else []
    taken = [TAKEN] if pipeline.record.transform and any(item_reasons(pipeline)) else []
    return [*(quote_identifier(field.name) for field in own), "_event_time", *numbered, *taken]


def record_flags_sql(pipeline: CompiledPipeline) -> Iterator[str]:
    """Write the side of a record, then whether it is selected."""
    record = pipeline.record
    flags = [field.name for field in record.flags]
    if record.sources:
        yield f"{quote_literal(record.sources[0])} AS {SOURCE}"
    if SIDE in flags and not record.sides:
        yield f"NULL::VARCHAR AS {SIDE}"
    if record.sides:
        whens = [f"WHEN {condition.duckdb} THEN {quote_literal(name)}" for name, condition in record.sides]
        if record.transform:
            whens.insert(0, f"WHEN NOT {TAKEN} THEN NULL")
        yield f"CASE {' '.join(whens)} END AS {SIDE}"
    if record.selective:
        stays = f"{SIDE} IS NULL" if record.sides else "true"
        chosen = f"({record.where.duckdb}) IS TRUE" if record.where else "true"
        taken = TAKEN if record.transform else "true"
        first = f"NOT {REPEATED}" if record.dedup else "true"
        yield f"({taken} AND {stays} AND {chosen} AND {first}) AS {SELECTED}"
    if record.dedup:
        yield f"{REPEATED} AS {DUPLICATE}"


def later_reasons(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List the reasons that follow those of the format; what the user's step left out needs a time only."""
    yield from restrict_to_selected(pipeline, column_reasons(pipeline))
    start = (pipeline.grid.start - EPOCH) // MICROSECOND
    yield "_event_time IS NULL", "null event time", "''"
    yield f"epoch_us(_event_time) < {start}", "event time before start", "_event_time::VARCHAR"
    yield from list_event_time_reasons(pipeline)
    yield from restrict_to_selected(pipeline, condition_reasons(pipeline))


def restrict_to_selected(pipeline: CompiledPipeline, reasons: Iterable[Reason]) -> Iterator[Reason]:
    """Restrict reasons to the records that the user's step took, where there is one."""
    for when, reason, detail in reasons:
        yield (f"{TAKEN} AND ({when})" if pipeline.record.transform else when), reason, detail


def column_reasons(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List what can be wrong with the columns that are not the format's."""
    own = pipeline.record.transform.schema.fields if pipeline.record.transform else ()
    for name in (field.name for field in own if not field.nullable):
        yield f"{quote_identifier(name)} IS NULL", f"missing field {name}", "''"
    for join in pipeline.record.lookups:
        for _, made in join.keys:
            yield from errors_in(f"lookup {join.name}", "TRUE", made)
        if trouble_sql(join):
            trouble = trouble_name(join)
            yield f"{trouble} IS NOT NULL", f"error in lookup {join.name}", trouble
    for field, made in pipeline.record.derived:
        yield from errors_in(f"select {field.name}", "TRUE", made)
    for name in pipeline.source.event_id:
        if name not in pipeline.required:
            yield f"{quote_identifier(name)} IS NULL", f"missing field {name}", "''"


def condition_reasons(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List the rules, and the expressions of a whole record that may have no value."""
    for rule, condition in pipeline.rules:
        sound = " AND ".join(
            [f"({each}) IS NOT TRUE" for each in list_guard_conditions(condition)] or ["TRUE"]
        )
        yield (
            f"({condition.duckdb}) IS NOT TRUE AND {sound}",
            f"rule {rule.name}",
            quote_literal(condition.text),
        )
    for place, selected, expression in expressions_of(pipeline):
        yield from errors_in(place, selected, expression)


def item_reasons(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List the expressions that may have no value on some item of a record."""
    for view in pipeline.views:
        if view.explode:
            for place, selected, expression in view_expressions(view):
                for when, reason, detail in errors_in(place, selected, expression):
                    yield in_some_item(view.explode, when), reason, detail


def in_some_item(explode: Explode, when: str) -> str:
    """Write whether a condition is true for an item of a record's array."""
    item = quote_identifier(explode.item.name)
    each = f"list_transform({explode.array.duckdb}, lambda {item}: coalesce({when}, false))"
    return f"coalesce(list_bool_or({each}), false)"


def errors_in(place: str, selected: str, expression: Expression) -> Iterator[Reason]:
    """List when an expression has no value on a record for which it is evaluated."""
    for guard in expression.guards:
        when = f"({selected}) AND ({guard.condition_duckdb}) IS TRUE"
        yield when, f"error in {place}", quote_literal(guard.message)


def list_event_time_reasons(pipeline: CompiledPipeline) -> Iterator[Reason]:
    """List what is too far from the Kafka timestamp; the time of processing is as far as the reader is behind."""
    if pipeline.source.event_time == PROCESSING_TIME:
        return
    kafka, said = "epoch_us(_kafka_timestamp)", "_event_time::VARCHAR"
    last = f"least({kafka} + {pipeline.max_future // MICROSECOND}, {(LAST - EPOCH) // MICROSECOND - 1})"
    yield f"epoch_us(_event_time) > {last}", "event time in the future", said
    if pipeline.max_past is not None:
        first = f"{kafka} - {pipeline.max_past // MICROSECOND}"
        yield f"epoch_us(_event_time) < {first}", "event time in the past", said


def value_reasons(reader: Reader) -> Iterator[Reason]:
    """List what can be wrong with a whole record."""
    if not reader.empty:
        yield "_value IS NOT NULL AND octet_length(_value) = 0", "empty value", "''"
    when, detail = reader.tombstone_sql()
    yield when, "tombstone", detail
    yield "_value IS NOT NULL AND _text IS NULL", "not utf-8", "''"
    yield from reader.refused_sql()
    for when, detail in reader.malformed_sql():
        yield when, f"malformed {reader.format.kind}", detail


def field_reasons(pipeline: CompiledPipeline, reader: Reader) -> Iterator[Reason]:
    """List what can be wrong with a field: missing ones first, then mistyped ones."""
    fields = list(enumerate(pipeline.record.parsed.fields, 1))
    deletion = pipeline.record.deletion
    for at, field in fields:
        asked = "TRUE" if field.name in pipeline.required else deletion.asked_sql(field) if deletion else ""
        if asked:
            null = field.name != pipeline.source.event_time
            when, detail = reader.absent_sql(field, at, null=null)
            # A column that has a value is not missing: the rest is asked of few records.
            sought = f"{quote_identifier(field.name)} IS NULL AND {asked} AND ({when})"
            yield sought, f"missing field {field.name}", detail
    for at, field in fields:
        when, detail = reader.mistyped_sql(field, at)
        yield when, f"mistyped field {field.name}", detail


def list_guard_conditions(expression: Expression) -> list[str]:
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
        for each in measure.sources:
            if each.expression and (each is measure or each not in view.measures):
                yield f"{view.name}.{measure.name}", selected, each.expression
