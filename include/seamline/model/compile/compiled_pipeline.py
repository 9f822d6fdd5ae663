"""A definition made ready for the engines: types resolved, expressions compiled, problems found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from seamline.model.compile.as_of.as_of_rules import compile_as_of_joins
from seamline.model.compile.asks.ask_rules import check_asks, compile_asks
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.changes.changelog_rules import compile_changelogs
from seamline.model.compile.compiled_measure import CompiledMeasure
from seamline.model.compile.compiled_source import CompiledSource, compile_sources
from seamline.model.compile.compiled_view import CompiledView, compile_view, version_of_view
from seamline.model.compile.counts.count_checks import check_count_topics
from seamline.model.compile.derived.derived_rows_views import (
    compile_view_of_derived,
    is_derived,
    narrow_derived,
)
from seamline.model.compile.evolution import Timed
from seamline.model.compile.fingerprint import event_time_identity, record_version
from seamline.model.compile.grouping_sets import GROUPING, NUMBER
from seamline.model.compile.join_rules import compile_joins
from seamline.model.compile.lookups.lookup_join import LookupJoin, check_decorating_lookups
from seamline.model.compile.lookups.rule_sources import attach_rule_tables
from seamline.model.compile.pipeline_checks import check_settings, check_shape, grid_of
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.compile.processes.count_rules import compile_counted_view
from seamline.model.compile.processes.fold_rules import compile_folds
from seamline.model.compile.record_rules import SOURCE, Record
from seamline.model.compile.sources import (
    check_sources,
    has_several,
    list_view_sources,
    merge_lookups,
    merge_records,
    narrow_record,
)
from seamline.model.definition.format_base import Format
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import ROUNDED, KafkaSource, Rule, Source
from seamline.model.definition.windows import CountWindow
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression
from seamline.model.time.intervals import Grid
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
    lookups: tuple[LookupJoin, ...] = ()
    """The look-ups whose columns are in rows, of all sources."""
    alone: tuple[CompiledPipeline, ...] = ()
    """What each of several sources would be alone, with the views of all: see ``by_source``."""
    asks: tuple[CompiledAsk, ...] = ()
    """What is asked of other systems."""

    @property
    def by_source(self) -> tuple[CompiledPipeline, ...]:
        """The pipelines of each source alone, with the views that count its rows; of one source it is this one."""
        if not self.alone:
            return (self,)
        return tuple(
            replace(
                each,
                views=tuple(view for view in self.views if each.source.name in view.of and not view.derived),
            )
            for each in self.alone
        )

    @property
    def source(self) -> Source:
        """The source of a pipeline that has one, or of one of those ``by_source``; TypeError where it has several."""
        return self.definition.only_source

    @property
    def event_id(self) -> tuple[str, ...]:
        """The columns that identify an event: those of all sources, and that of the source where there are several."""
        sources = self.definition.sources
        names = dict.fromkeys(name for source in sources for name in source.event_id)
        return (SOURCE, *names) if names and self.alone else tuple(names)

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
        source = self.source
        fields = self.record.parsed.fields
        deletion = self.record.deletion
        wanted = {source.event_time, *source.event_id, *(deletion.key if deletion else ())}
        wanted -= deletion.spared if deletion else set()
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
    if not pipeline.exact or not isinstance(pipeline.source, KafkaSource):
        return ""
    source = replace(pipeline.source, decimals=ROUNDED)
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
    if not check_shape(pipeline, problems) or (
        has_several(pipeline) and not (check_asks(pipeline, problems) and check_sources(pipeline, problems))
    ):
        return None, problems.found
    sources = compile_sources(pipeline, problems)
    grid = problems.attempt("batch", pipeline.origin, lambda: grid_of(pipeline))
    check_settings(pipeline, problems)
    check_count_topics(pipeline, problems)
    if grid is None or not all(sources):
        return None, problems.found
    made = tuple(source for source in sources if source)
    record, lookups = made[0].record, made[0].record.lookups
    if has_several(pipeline):
        alone = [source.definition for source in made]
        record = merge_records(alone, [source.record for source in made], problems)
        lookups = merge_lookups(alone, [source.record for source in made], problems)
        made = tuple(
            replace(each, record=replace(each.record, sources=(name,), flagged=record.flagged))
            for name, each in zip(record.sources, made, strict=True)
        )
        made = attach_rule_tables(made, lookups, problems)
    records = dict(zip(record.sources, (each.record for each in made), strict=False))
    changes = dict(zip(record.sources, (each.changes for each in made), strict=False))
    asks = compile_asks(pipeline, records, problems)
    derived: dict[str, Derived] = {
        **compile_joins(pipeline, records, grid, problems),
        **compile_as_of_joins(pipeline, records, grid, problems),
        **{each.name: each.join for each in asks},
        **compile_folds(pipeline, records, grid, problems),
        **compile_changelogs(pipeline, records, changes, problems),
    }
    compiled = [
        view
        for declared in pipeline.views
        if (view := compile_own_view(pipeline, declared, made, record, derived, grid, problems))
    ]
    views = narrow_derived(compiled)
    if len(views) == len(pipeline.views):
        items = [field for view in views if view.explode for field in view.explode.seen]
        keyed = [Schema(view.keys) for view in views]
        check_decorating_lookups(pipeline, record.schema.with_(*items), keyed, problems)
    if problems.found:
        return None, problems.found
    version = record_version(pipeline, record.added, made[0].judged)
    clock = event_time_identity(pipeline)

    def whole(source: CompiledSource, definition: Pipeline, record: Record, **more: Any) -> CompiledPipeline:
        return CompiledPipeline(
            definition,
            source.format,
            record,
            views,
            grid,
            source.max_future,
            source.max_past,
            source.very_late,
            version,
            source.dedup_within,
            exact=source.exact,
            clock=clock,
            **more,
        )

    if not has_several(pipeline):
        return whole(made[0], pipeline, record, lookups=lookups), []
    each_alone = tuple(
        whole(each, each.definition, each.record, lookups=each.record.lookups) for each in made
    )
    widest = replace(
        made[0],
        max_future=max(each.max_future for each in made[: len(made) - len(asks)]),
        very_late=max(each.very_late for each in made),
        exact=False,
    )
    return whole(widest, pipeline, record, lookups=lookups, alone=each_alone, asks=asks), []


def compile_own_view(
    pipeline: Pipeline,
    view: View,
    sources: Sequence[CompiledSource],
    record: Record,
    derived: Mapping[str, Derived],
    grid: Grid,
    problems: Problems,
) -> CompiledView | None:
    """Compile a view over the rows that it is of, with its fingerprint; None where it has a problem."""
    names = list_view_sources(view)
    if is_derived(pipeline, names):
        made = compile_view_of_derived(pipeline, view, names, derived, grid, problems)
        return made and replace(version_of_view(pipeline, view, made, record, grid, ()), of=names)
    known = dict(zip(record.sources, (each.record for each in sources), strict=False))
    if has_several(pipeline):
        seen = problems.attempt(
            f"views[{view.name}].of",
            view.origin,
            lambda: narrow_record(record, names, known, [each.name for each in pipeline.derive]),
        )
        if seen is None:
            return None
        record = seen
    judged = sources[0].judged
    if isinstance(view.window, CountWindow) and view.window.folded:
        lookups = {each.name for name in names if name in known for each in known[name].lookups}
        counted = compile_counted_view(pipeline, view, names, record, lookups, grid, problems)
        return counted and replace(version_of_view(pipeline, view, counted, record, grid, judged), of=names)
    made = compile_view(pipeline, view, record, grid, problems)
    return made and replace(version_of_view(pipeline, view, made, record, grid, judged), of=names)
