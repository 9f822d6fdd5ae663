"""A definition made ready for the engines: types resolved, expressions compiled, problems found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from seamline.model.compile.compiled_measure import CompiledMeasure
from seamline.model.compile.compiled_view import GROUPING, NUMBER, CompiledView, compile_view, version_of_view
from seamline.model.compile.defaults import past_of
from seamline.model.compile.evolution import Timed, list_used_columns, parse_added_columns
from seamline.model.compile.fingerprint import event_time_identity, reads_exactly, record_version
from seamline.model.compile.lookup_join import check_decorating_lookups
from seamline.model.compile.pipeline_checks import (
    check_counts,
    check_defaults,
    check_durability,
    check_names,
    check_provisional,
)
from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import Record, check_source, compile_record
from seamline.model.definition.formats import Format, format_of
from seamline.model.definition.pipeline import DIGITS, EXACT, ROUNDED, Pipeline, Rule
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import (
    FIRST,
    LAST,
    Grid,
    floor_to,
    format_utc_instant,
    parse_duration,
    parse_moment,
)
from seamline.model.time.zone_clock import SECOND
from seamline.model.types.schema import Schema

__all__ = [
    "GROUPING",
    "NUMBER",
    "CompiledMeasure",
    "CompiledPipeline",
    "CompiledView",
    "Problems",
    "compile_pipeline",
    "compile_with_problems",
    "rounded_record_version",
]


@dataclass(frozen=True)
class CompiledPipeline:
    """A pipeline that may run."""

    definition: Pipeline
    """The definition as declared."""
    format: Format
    """How the bytes of a record are read."""
    record: Record
    """The steps by which a record becomes a row."""
    views: tuple[CompiledView, ...]
    """The compiled views, in order; of a stream those of older versions that still run, too."""
    grid: Grid
    """The intervals."""
    max_future: timedelta
    """How far event time may be ahead of Kafka's timestamp."""
    max_past: timedelta | None
    """How far it may be behind, None for no bound."""
    very_late: timedelta
    """How far behind the watermark a row is very late."""
    record_version: str
    """A hash of what records mean, with the added columns."""
    dedup_within: timedelta | None = None
    """For how long the stream removes duplicates by itself, None if not."""
    exact: bool = False
    """Whether numbers become DECIMALs by their own digits."""
    clock: str = ""
    """The identity of the event time."""

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.definition.name

    @property
    def schema(self) -> Schema:
        """The columns of a row that views see: parsed ones, then derived ones."""
        return self.record.schema

    @property
    def rules(self) -> tuple[tuple[Rule, Expression], ...]:
        """The rules with their conditions."""
        return self.record.rules

    @property
    def surveyed(self) -> bool:
        """True if what becomes of a record depends on those before it, so that an epoch is read twice."""
        return self.record.dedup or any(view.counts for view in self.views)

    @property
    def required(self) -> frozenset[str]:
        """The columns without which a record is refused."""
        source = self.definition.source
        fields = self.record.parsed.fields
        wanted = {source.event_time, *source.event_id}
        return frozenset(field.name for field in fields if not field.nullable or field.name in wanted)

    @property
    def timed(self) -> Timed:
        """The clock of event times."""
        return Timed(self.record_version, self.clock)

    def view(self, name: str) -> CompiledView | None:
        """Find a view by name."""
        return next((view for view in self.views if view.name == name), None)


def rounded_record_version(pipeline: CompiledPipeline) -> str:
    """Return the record version of rows whose DECIMAL columns were read as once; empty where there are none."""
    if not pipeline.exact:
        return ""
    source = replace(pipeline.definition.source, decimals=ROUNDED)
    return compile_pipeline(replace(pipeline.definition, source=source)).record_version


def compile_pipeline(pipeline: Pipeline) -> CompiledPipeline:
    """Check and compile a definition; raise the first of its problems."""
    compiled, problems = compile_with_problems(pipeline)
    if compiled is None:
        raise problems[0]
    return compiled


def compile_with_problems(pipeline: Pipeline) -> tuple[CompiledPipeline | None, list[DefinitionError]]:
    """Compile a definition, or list every problem it has."""
    problems = Problems()
    source, origin = pipeline.source, pipeline.origin
    check_names(pipeline, problems)
    parsed = problems.attempt("source.schema", source.origin, lambda: Schema.parse(source.schema))
    format = problems.attempt("source.format", source.origin, lambda: format_of(source.format))
    grid = problems.attempt("batch", origin, lambda: grid_of(pipeline))
    future = problems.attempt("source.max_future", source.origin, lambda: parse_duration(source.max_future))
    past = (
        problems.attempt("source.max_past", source.origin, lambda: parse_duration(bound))
        if (bound := past_of(pipeline)) != ""
        else None
    )
    very_late = problems.attempt("source.very_late", source.origin, lambda: parse_duration(source.very_late))
    within = (
        problems.attempt("source.dedup_within", source.origin, lambda: parse_duration(source.dedup_within))
        if source.dedup_within not in ("", None)
        else None
    )
    problems.attempt(
        "source.watermark", source.origin, lambda: (source.watermark.bound, source.watermark.idle)
    )
    for setting in ("trigger", "edge_every", "serve_every", "epoch_target", "stuck_after"):
        declared: str = getattr(pipeline.stream, setting)
        problems.attempt(
            f"stream.{setting}", origin, partial(parse_duration, declared, zero=setting == "trigger")
        )
    problems.attempt("stream.worker_memory", origin, lambda: parse_memory(pipeline.stream.worker_memory))
    if pipeline.batch.fresh_within not in ("", None):
        problems.attempt("batch.fresh_within", origin, lambda: parse_duration(pipeline.batch.fresh_within))
    if source.decimals not in (DIGITS, EXACT, ROUNDED):
        problems.note(
            "source.decimals", source.origin, f"{source.decimals!r} is not a known value.", "leave it out."
        )
    check_counts(pipeline, problems)
    check_provisional(pipeline, problems)
    check_durability(pipeline, problems)
    check_defaults(pipeline, problems)
    if parsed is None or format is None or grid is None or future is None:
        return None, problems.found
    added = parse_added_columns(source, parsed, problems)
    problems.attempt("source.format", source.origin, lambda: format.check(parsed.with_(*added)))
    record = compile_record(pipeline, parsed, problems, added)
    if pipeline.transform and record.transform is None:
        return None, problems.found
    check_source(pipeline, record.schema, problems)
    judged = list_used_columns(added, lambda some, found: compile_record(pipeline, parsed, found, some))
    views = tuple(
        version_of_view(pipeline, view, made, record, grid, judged)
        for view in pipeline.views
        if (made := compile_view(pipeline, view, record, grid, problems)) is not None
    )
    if len(views) == len(pipeline.views):
        items = [view.explode.item for view in views if view.explode]
        keyed = [Schema(view.keys) for view in views]
        check_decorating_lookups(pipeline, record.schema.with_(*items), keyed, problems)
    if problems.found or very_late is None:
        return None, problems.found
    version = record_version(pipeline, added, judged)
    return CompiledPipeline(
        pipeline,
        format,
        record,
        views,
        grid,
        future,
        past,
        very_late,
        version,
        within,
        exact=reads_exactly(pipeline) and any(field.type.decimals for field in record.parsed.fields),
        clock=event_time_identity(pipeline),
    ), []


def grid_of(pipeline: Pipeline) -> Grid:
    """Return the grid of intervals; the start must be a border of it."""
    length, start = parse_duration(pipeline.batch.interval), parse_moment(pipeline.batch.start)
    if parse_duration("1 day") % length and length % parse_duration("1 day"):
        raise DefinitionError(
            f"An interval of {pipeline.batch.interval} does not divide the day.",
            hint='use "1 hour", "6 hours" or "1 day".',
            field="interval",
        )
    if length < SECOND:
        raise DefinitionError(
            f"An interval of {pipeline.batch.interval} is shorter than a second.",
            hint='use "1 hour", "6 hours" or "1 day".',
            field="interval",
        )
    if not FIRST <= start < LAST:
        raise DefinitionError(
            f"{pipeline.batch.start} is too close to an end of the calendar.",
            hint=f"start at {format_utc_instant(FIRST)} or later, and before {format_utc_instant(LAST)}.",
            field="start",
        )
    if floor_to(start, length) != start:
        raise DefinitionError(
            f"{pipeline.batch.start} is inside an interval of {pipeline.batch.interval}.",
            hint=f"start at {floor_to(start, length).isoformat()}.",
            field="start",
        )
    return Grid(length, start)
