"""A view made again of a few published intervals, beside what is published of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.read.row_differences import compare_rows, generation_rows, present_window_states
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import BadRange, ProtocolError
from seamline.model.protocol.manifest import Statement
from seamline.model.time.intervals import Interval
from seamline.model.time.reached_intervals import widen_by_reach, widen_to_intervals
from seamline.plan.batch.interval_arrivals import Arrivals
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs
from seamline.plan.revision.preview import IntervalPreview, ViewPreview
from seamline.plan.revision.preview_obstacles import find_record_obstacle, find_view_obstacle
from seamline.plan.revision.samples import MOST_ROWS, Sampled, choose_samples
from seamline.serve.generation_differences import list_common_measures, places_of
from seamline.serve.previews.interval_preview import summarize_interval
from seamline.serve.previews.sampled_rows import open_sampled_rows
from seamline.serve.previews.sampled_states import compute_interval_states


@dataclass(frozen=True)
class Wanted:
    """What a preview is asked for."""

    sample: int
    """How many intervals at most."""
    examples: bool = True
    """Whether rows are shown, with their keys."""
    cut: int | None = None
    """The cut up to which numbers are made again; None for that of what is published, so that rows are the same."""
    weights: Mapping[str, int] | None = None
    """The intervals that may be chosen, with their late rows; None for all that are published."""


def preview_view(
    pipeline: CompiledPipeline, view: CompiledView, layout: Layout, wanted: Wanted, served: str = ""
) -> ViewPreview:
    """Compare what is published of a view with what ``view`` would make of the same intervals.

    ``served`` is the name under which it is served, where that is another one. Nothing is written.
    """
    manifest = manifest_of(layout)
    name = served or view.name
    version = manifest.serving.get(name, "")
    empty = ViewPreview(view.qualified, version, view.id, limit=pipeline.definition.batch.approve_change)
    if not version:
        return replace(empty, why="nothing is served of it")
    try:
        before, old = resolve_view_version(pipeline, manifest, version)
        places = places_of(old, view)
    except (ProtocolError, BadRange) as problem:
        return replace(empty, why=problem.message)
    if why := find_view_obstacle(before, pipeline, view):
        return replace(empty, why=why)
    published = {
        interval: each
        for (id, interval), each in manifest.published.items()
        if id == version and (wanted.weights is None or interval in wanted.weights)
    }
    if not published:
        return replace(
            empty, why="nothing is published of it" if wanted.weights is None else "nothing is late"
        )
    names = [{each.name for each in one.measures} for one in (old, view)]
    empty = replace(
        empty,
        lost=tuple(each.name for each in old.measures if each.name not in names[1]),
        added=tuple(each.name for each in view.measures if each.name not in names[0]),
    )
    return Comparing(pipeline, view, layout, before, old, tuple(places), wanted, empty).compare(published)


@dataclass(frozen=True)
class Comparing:
    """What is compared."""

    pipeline: CompiledPipeline
    """What the numbers are made by."""
    view: CompiledView
    """The version that is made."""
    layout: Layout
    """Where the records and the published numbers are."""
    before: CompiledPipeline
    """The pipeline of the version that is served."""
    old: CompiledView
    """The version that is served."""
    places: tuple[str, ...]
    """Columns that distinguish the rows of both."""
    wanted: Wanted
    """What is asked for."""
    empty: ViewPreview
    """What is known of the two before any interval is looked at."""

    def compare(self, published: Mapping[str, Statement]) -> ViewPreview:
        """Compare some of the published intervals."""
        weights = self.wanted.weights or {}
        chosen = choose_samples((Sampled(id, weights.get(id, 0)) for id in published), self.wanted.sample)
        cuts = {each.interval: self.find_cut(published[each.interval]) for each in chosen}
        log, last = (
            read_reprocessed_log(self.pipeline, self.layout, cuts={*cuts.values()}),
            max(cuts.values()),
        )
        again = bool(list_outdated_epochs(log, self.pipeline.record_version, (), until=last))
        found = replace(self.empty, published=len(published))
        if again and (why := find_record_obstacle(self.before, self.pipeline)):
            return replace(found, why=why)
        arrivals = Arrivals(log, until=last)
        looked: list[IntervalPreview] = []
        skipped: dict[str, str] = {}
        for id, cut in cuts.items():
            rows = self.count_rows(id, cut, arrivals)
            if why := self.find_interval_obstacle(id, max(rows, published[id].rows)):
                skipped[id] = why
            else:
                looked.append(self.compare_interval(id, published[id], cut, again=again))
        return replace(found, intervals=tuple(looked), skipped=skipped)

    def find_cut(self, statement: Statement) -> int:
        """Return the epoch up to which an interval is made again; never below what is published."""
        return statement.epoch if self.wanted.cut is None else max(self.wanted.cut, statement.epoch)

    def span_of(self, id: str) -> Interval:
        """Return the event times of the rows that an interval is made of."""
        return widen_by_reach(self.pipeline.grid, self.pipeline.grid.named(id), self.view)

    def count_rows(self, id: str, cut: int, arrivals: Arrivals) -> int:
        """Count the rows that an interval is made of."""
        grid = self.pipeline.grid
        reached = widen_to_intervals(grid, grid.named(id), self.view)
        return sum(arrivals.rows(each.id, until=cut) for each in grid.within(reached))

    def find_interval_obstacle(self, id: str, rows: int) -> str:
        """Say why an interval of so many rows is not looked at; empty if it is."""
        if rows > MOST_ROWS:
            return f"it has {rows:,} rows, more than the {MOST_ROWS:,} that a preview reads"
        if meets_restatement(self.layout, self.span_of(id)):
            return "a look-up was restated for it"
        return ""

    def compare_interval(self, id: str, statement: Statement, cut: int, *, again: bool) -> IntervalPreview:
        """Make an interval again, and compare it with what is published of it."""
        interval = self.pipeline.grid.named(id)
        with (
            open_beside() as con,
            open_sampled_rows(
                con, self.pipeline, self.layout, self.span_of(id), cut, again=again
            ) as relation,
        ):
            made = compute_interval_states(
                con, self.pipeline, self.view, self.layout, interval, cut, relation
            )
        published = generation_rows(self.layout, self.old, interval, statement.generation)
        measures = list_common_measures(self.old, self.view)
        found = compare_rows(published, present_window_states(self.view, made), self.places, measures)
        return summarize_interval(found, id, cut, examples=self.wanted.examples)


def meets_restatement(layout: Layout, span: Interval) -> bool:
    """Return whether a look-up was restated for rows of a span."""
    return any(each.span.overlaps(span) for each in list_restatements(layout))
