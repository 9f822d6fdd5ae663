"""Versions pinned in the order that misses nothing: E and W(v), slices, manifest, generations (rule 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from seamline.lake.joins.restatements import find_fitting_epoch
from seamline.lake.log.log_edges import Edges
from seamline.lake.log.pinned_log import (
    fill_newest_row,
    frontier_at,
    log_of,
    moment_of,
    past_of,
)
from seamline.lake.read.pinned_slices import find_complete_epoch, pin_slices, require_line
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.lapsed import require_epochs
from seamline.lake.tables.manifest_table import find_version_id, manifest_of
from seamline.lake.tables.stored_panes import require_fine
from seamline.lake.tables.torn_logs import out_of_step
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.protocol.holes import count_hole_offsets
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.restated_views import list_view_restatements
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING, Side
from seamline.model.time.intervals import Grid, Interval


@dataclass(frozen=True)
class Snapshot:
    """What one read depends on, pinned at one version of each table."""

    view: CompiledView
    """The version that is asked."""
    grid: Grid
    """The pipeline's intervals."""
    has_event_id: bool
    """Whether records have an event id, so that duplicates can be recognised."""
    dedup_within: str
    """The span within which the stream drops duplicates, as the definition spells it; empty if it keeps them."""
    epoch: int
    """The last epoch that was committed, or the one as of which to answer."""
    until: int
    """The last epoch whose slices count, at most ``epoch``."""
    as_of: bool
    """Whether today's publications answer for an epoch of the past, as far as they fit."""
    watermark: datetime | None
    """The watermark at ``epoch``; None before the first event."""
    edges: Edges
    """Edges of the log; those of another clock count without their watermarks."""
    held: EpochNumbers
    """Numbers of the committed epochs."""
    slices: Files | None
    """None if the batch side alone is asked for, or there is no table."""
    manifest: Manifest
    """Of now, or with ``served_at`` as it was then."""
    generations: Files | None
    """None if the speed side alone is asked for, or there is no table."""
    restated: tuple[Restatement, ...]
    """Oldest first; those decided by ``served_at``, none with ``as_of``."""
    served_at: datetime | None = None
    """The instant whose publications answer; None for those of now."""
    gone: Mapping[str, int] = field(default_factory=dict)
    """With ``served_at``: the floors of today by interval id, up to which slices may be gone."""
    lacking: Mapping[Interval | None, int] = field(default_factory=dict)
    """Offsets in open holes by the event times that they may have had; None is any."""
    borders: tuple[tuple[Interval | None, datetime], ...] = ()
    """Of imports that leave rows to the topic by time alone: their rows' event times, and from when on they do."""

    @property
    def past(self) -> bool:
        """Return whether the past is asked for."""
        return self.as_of or self.served_at is not None

    @classmethod
    def pin(
        cls,
        pipeline: CompiledPipeline,
        view: CompiledView,
        layout: Layout,
        request: ReadRequest,
    ) -> Snapshot:
        """Pin what a question needs of the version that is served under the view's name, or of the one that it names.

        NotFound if the stream never ran, BadRange for an unknown ``as_of`` or ``served_at`` and where the log has
        lost epochs of then, ProtocolError for a version that cannot be made from its stored definition.
        """
        side, as_of, served_at, version = request.side, request.as_of, request.served_at, request.version
        known = manifest_of(layout, served_at)
        pipeline, view = resolve_view_version(pipeline, known, find_version_id(known, view, version))
        log = read_cached_table(layout.table("master"), ("log", view.id), lambda table: log_of(table, view))
        if log is None:
            raise NotFound(
                f"{pipeline.name} has no master yet at {layout.warehouse}.",
                hint="start its stream first, or name the warehouse that has its tables.",
            )
        if side is not Side.BATCH:
            require_line(layout, log)
        log = fill_newest_row(layout, log)
        told = past_of(layout, log)
        epoch, watermark = log.epoch, pipeline.timed.watermark_at(log.newest)
        frontier = log.frontier
        if (past := served_at or as_of) is not None:
            epoch, row = moment_of(layout, log, told.held, past)
            watermark = pipeline.timed.watermark_at(row)
        if served_at is not None:
            require_epochs(layout, view, log, told.held, epoch=epoch, instant=served_at)
            frontier = frontier_at(layout, log, epoch, view)
        found = None if side is Side.BATCH else pin_slices(layout, view, log)
        if side is not Side.BATCH:
            frontier = min(frontier, find_complete_epoch(log, found))
        if log.newest is not None:
            require_fine(layout, view, log.newest.committed_at + pipeline.max_future)
        manifest = manifest_of(layout, served_at)
        if find_version_id(manifest, view, version) != view.id:
            return cls.pin(pipeline, view, layout, request)
        generations = (
            None if side is Side.SPEED else read_cached_table(layout.generations(view), "files", Files.of)
        )
        decided = list_restatements(layout)
        if view.derived:
            decided = decided[: log.newest.restated if log.newest else 0]
        made = cls(
            view=view,
            grid=pipeline.grid,
            has_event_id=bool(pipeline.event_id),
            dedup_within=pipeline.definition.sources[0].dedup_within,
            epoch=epoch,
            until=min(epoch, frontier),
            as_of=as_of is not None,
            watermark=watermark,
            edges=told.edges.within(told.list_clock_runs(pipeline.timed)),
            held=told.held,
            lacking=count_hole_offsets(each for each in told.register if each.number <= epoch),
            borders=tuple(
                (each.bounds, each.until) for each in told.register if each.until and each.number <= epoch
            ),
            slices=found.files if found else None,
            manifest=manifest,
            generations=generations,
            restated=() if as_of is not None else known_by(decided, served_at),
            served_at=served_at,
            gone={} if served_at is None else list_raised_floors(manifest_of(layout), view),
        )
        if as_of is None or not view.derived or side is not Side.MERGED:
            return made
        born = manifest.births.get(view.id, 0)
        fitting = find_fitting_epoch(pipeline, view, layout, made.generation, born=born, until=made.until)
        return replace(made, until=fitting)

    def generation(self, interval: str) -> Statement | None:
        """Return the generation that answers for an interval: the published one, or the one as of then."""
        place = (self.view.id, interval)
        if not self.as_of:
            return self.believed(self.manifest.published.get(place))
        known = self.manifest.history.get(place, ())
        gone = self.manifest.forgotten
        fitting = (
            each
            for each in reversed(known)
            if each.epoch <= self.epoch
            and self.counts_epoch(each.epoch)
            and (*place, each.generation) not in gone
        )
        return next(fitting, None)

    def believed(self, generation: Statement | None) -> Statement | None:
        """Return a published generation; OutOfStep if the epoch that it was built up to is not committed."""
        if generation and generation.epoch <= self.epoch and not self.counts_epoch(generation.epoch):
            raise out_of_step(
                self.view.qualified.partition(".")[0],
                f"generation {generation.generation} is served up to epoch {generation.epoch}, which the log has lost",
            )
        return generation

    def counts_epoch(self, number: int) -> bool:
        """Return whether an epoch is committed, or the number stands for none."""
        return number <= NOTHING or number in self.held

    def unmade(self, generation: Statement, interval: str) -> bool:
        """Return whether an interval was restated since a generation of it was built."""
        new = self.restated[generation.restated :]
        return bool(list_view_restatements(self.view, self.grid, self.grid.named(interval), new))

    def floor(self, interval: str) -> int:
        """Return the epoch up to which the interval's slices may be gone."""
        return self.manifest.floor(self.view.id, interval)

    def building(self, interval: str, side: Side) -> bool:
        """Return whether an interval has no answer; BadRange if it had one that is gone by now."""
        if side is Side.SPEED:
            return False
        found, floor = self.generation(interval), self.floor(interval)
        if floor <= NOTHING or (found and (found.epoch >= floor or found.epoch >= self.until)):
            return False
        if self.as_of and not self.manifest.is_building(self.view.id, interval):
            raise BadRange(
                f"{self.view.qualified} {interval} cannot be answered as of epoch {self.epoch}: slices up to "
                f"{floor} have been removed and no generation of that time is left.",
                hint=f"ask as of epoch {floor} or later.",
            )
        return True


def known_by(decisions: tuple[Restatement, ...], instant: datetime | None) -> tuple[Restatement, ...]:
    """Keep the restatements that were decided by then."""
    return decisions if instant is None else tuple(each for each in decisions if each.at <= instant)


def list_raised_floors(manifest: Manifest, view: CompiledView) -> Mapping[str, int]:
    """List the floors of a view's intervals that were raised."""
    return {interval: epoch for (id, interval), epoch in manifest.floors.items() if id == view.id}
