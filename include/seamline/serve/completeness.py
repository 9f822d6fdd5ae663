"""Interval by view: what is certified, open, dirty, or was never built, and what each was proven by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from seamline.lake.joins.restatements import read_restated
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import list_red_intervals
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import read_split_log
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.holes import count_touching_holes, list_open_holes
from seamline.model.time.intervals import parse_moment
from seamline.model.time.reached_intervals import widen_by_reach
from seamline.serve.known_intervals import KnownIntervals
from seamline.serve.pipeline_status import find_interval_status


@dataclass(frozen=True)
class Cell:
    """One interval of one view version."""

    view: str
    """The view's name, without the pipeline."""
    version: str
    """The fingerprint."""
    interval: str
    """The interval's id."""
    status: str
    """The value of a ``seam.Status``."""
    failed: bool
    """Whether the newest certificate is red."""
    holes: int
    """How many registered holes may touch the interval."""
    rows: int
    """Records of the interval that are accepted by now."""
    since: int
    """Records above the cut."""
    cut: int
    """The last epoch that the generation counts, or up to which slices may be gone; -1 for none."""
    generation: str
    """The published one; empty for none."""
    run: str
    """The run that published it; empty for none."""

    def is_of(self, view: CompiledView) -> bool:
        """Return whether it is of this version of a view."""
        return (self.view, self.version) == (view.name, view.fingerprint)


def list_completeness(pipeline: CompiledPipeline, layout: Layout) -> list[Cell]:
    """List every interval that has rows, of every version that runs; oldest first, views in their order."""
    manifest = manifest_of(layout)
    versions = add_live_versions(pipeline, layout).views
    epochs = read_split_log(pipeline, layout, manifest, versions)
    register, decided = list_open_holes(epochs), read_restated(pipeline, layout, epochs)
    red, found = list_red_intervals(layout), []
    known = KnownIntervals.read(pipeline, layout, versions, epochs)
    views = [(each, each.id, known.of(each.id)) for each in versions]
    for id in known.all:
        by_epoch = known.accepted.get(id, {})
        rows = sum(by_epoch.values())
        # Few pipelines have holes or decisions, and years of hours are many.
        span = pipeline.grid.named(id) if register or decided.decisions else None
        for view, name in ((view, name) for view, name, shown in views if id in shown):
            published = manifest.published.get((name, id))
            cut = published.epoch if published else manifest.floor(name, id)
            restated = bool(span and decided.decisions and decided.list_new(manifest, [name], span))
            found.append(
                Cell(
                    view=view.name,
                    version=view.fingerprint,
                    interval=id,
                    status=find_interval_status(manifest, name, id, known, restated=restated).value,
                    failed=(name, id) in red,
                    holes=count_touching_holes(register, widen_by_reach(pipeline.grid, span, view))
                    if span and register
                    else 0,
                    rows=rows,
                    since=sum(count for number, count in by_epoch.items() if number > cut),
                    cut=cut,
                    generation=published.generation if published else "",
                    run=published.run if published else "",
                )
            )
    return found


def list_asked_cells(cells: Iterable[Cell], start: str | None, end: str | None) -> list[Cell]:
    """List the cells of intervals that start in ``[start, end)``, None for no bound, the newest first; BadRange."""
    begin, until = (parse_moment(each) if each else None for each in (start, end))
    asked = [
        each
        for each in cells
        if (begin is None or parse_moment(each.interval) >= begin)
        and (until is None or parse_moment(each.interval) < until)
    ]
    return sorted(asked, key=lambda each: each.interval, reverse=True)
