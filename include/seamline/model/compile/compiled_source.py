"""A source made ready for the engines: how its records become rows, and the bounds of their event times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from seamline.model.compile.changes.deletions import check_deletion, find_deletion, spare_columns
from seamline.model.compile.changes.row_changes import RowChanges, compile_row_changes
from seamline.model.compile.counts.count_checks import check_source_counts
from seamline.model.compile.defaults import past_of
from seamline.model.compile.evolution import list_used_columns, parse_added_columns
from seamline.model.compile.fingerprint import reads_exactly
from seamline.model.compile.pipeline_checks import check_bounds
from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import PROCESSING_TIME, Record, check_source, compile_record
from seamline.model.compile.sources import (
    check_unnamed_source,
    has_several,
    list_narrowed,
    locate_problem,
)
from seamline.model.definition.format_base import Format
from seamline.model.definition.formats import format_of
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import DIGITS, EXACT, ROUNDED, DeltaSource
from seamline.model.time.intervals import parse_duration
from seamline.model.types.schema import Field, Schema

OF_RECORD = ("_key", "_value", "_kafka_timestamp")
"""What a column of a table may be of a record beside a field."""


@dataclass(frozen=True)
class CompiledSource:
    """A source whose settings are known to fit."""

    definition: Pipeline
    """The pipeline of this source alone."""
    format: Format
    """How the bytes of a record are read."""
    record: Record
    """The steps by which a record becomes a row."""
    max_future: timedelta
    """How far event time may be ahead of Kafka's timestamp."""
    max_past: timedelta | None
    """How far it may be behind, None for no bound."""
    very_late: timedelta
    """How far behind the watermark a row is very late."""
    dedup_within: timedelta | None
    """For how long the stream removes duplicates by itself, None if not."""
    judged: tuple[Field, ...]
    """The added columns that the record's steps use."""
    exact: bool
    """Whether numbers become DECIMALs by their own digits."""
    changes: RowChanges | None = None
    """Which row of a table each record is a change of; None where that is not said."""


def compile_sources(pipeline: Pipeline, problems: Problems) -> list[CompiledSource | None]:
    """Compile each source; its problems are noted, by its name where there are several, and None stands for it then."""
    if not has_several(pipeline):
        check_unnamed_source(pipeline, problems)
        return [compile_source(pipeline, problems)]
    found = []
    for alone in list_narrowed(pipeline):
        own = Problems()
        found.append(compile_source(alone, own))
        for each in own.found:
            each.field = locate_problem(each.field, alone.only_source.name)
        problems.found += own.found
    return found


def compile_source(pipeline: Pipeline, problems: Problems) -> CompiledSource | None:
    """Compile the source of a pipeline that has one; None where it cannot be one."""
    source = pipeline.only_source
    parsed = problems.attempt("source.schema", source.origin, lambda: Schema.parse(source.schema))
    format = problems.attempt("source.format", source.origin, lambda: format_of(source.format))
    future = problems.attempt("source.max_future", source.origin, lambda: parse_duration(source.max_future))
    past = (
        problems.attempt("source.max_past", source.origin, lambda: parse_duration(bound))
        if (bound := past_of(pipeline)) != ""
        else None
    )
    very_late = problems.attempt("source.very_late", source.origin, lambda: parse_duration(source.very_late))
    within = (
        problems.attempt("source.dedup_within", source.origin, lambda: parse_duration(source.dedup_within))
        if source.dedup_within
        else None
    )
    problems.attempt(
        "source.watermark", source.origin, lambda: (source.watermark.bound, source.watermark.idle)
    )
    if source.decimals not in (DIGITS, EXACT, ROUNDED):
        problems.note(
            "source.decimals", source.origin, f"{source.decimals!r} is not a known value.", "leave it out."
        )
    check_bounds(source, problems)
    if parsed is None or format is None or future is None:
        return None
    added = parse_added_columns(source, parsed, problems)
    problems.attempt("source.format", source.origin, lambda: format.check(parsed.with_(*added)))
    check_deletion(source, format, parsed, problems)
    deletion = find_deletion(source, parsed)
    seen = spare_columns(parsed, deletion)
    record = replace(compile_record(pipeline, seen, problems, added), deletion=deletion)
    if pipeline.transform and record.transform is None:
        return None
    check_source(pipeline, record.schema, problems)
    changes = compile_row_changes(source, record.schema, problems, deletion)
    check_source_counts(source, record.schema, problems)
    if isinstance(source, DeltaSource):
        check_table_source(source, parsed, problems)
    judged = list_used_columns(added, lambda some, found: compile_record(pipeline, seen, found, some))
    if very_late is None:
        return None
    return CompiledSource(
        pipeline,
        format,
        record,
        future,
        past,
        very_late,
        within,
        judged,
        changes=changes,
        exact=reads_exactly(pipeline) and any(field.type.decimals for field in record.parsed.fields),
    )


def check_table_source(source: DeltaSource, schema: Schema, problems: Problems) -> None:
    """Note a table without a name, an event time that it cannot have, and columns that are taken for nothing."""
    if not source.table.strip():
        problems.note(
            "source.table",
            source.origin,
            "The source names no table.",
            'for example: table="/lake/orders", or the URL of a folder in a bucket.',
        )
    elif not (source.table.startswith("/") or "://" in source.table):
        problems.note(
            "source.table",
            source.origin,
            f"{source.table!r} is not an absolute path: each process would look for it elsewhere.",
            "write the whole path, or the URL of a folder in a bucket.",
        )
    if source.event_time == PROCESSING_TIME:
        problems.note(
            "source.event_time",
            source.origin,
            "Rows of a table have no processing time.",
            "name a column, or _kafka_timestamp, which is when a row's version was committed.",
        )
    known = [*(each.name for each in schema.fields), *OF_RECORD]
    for name in (each for each in source.columns if each not in known):
        problems.note(
            "source.columns",
            source.origin,
            f"There is no field {name!r}.",
            f"name one of {', '.join(known)}: the field is before the colon, the table's column after it.",
        )
