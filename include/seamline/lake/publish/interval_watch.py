"""Waiting for intervals of a view: cheap looks at the tables, for whoever builds on what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from seamline.lake.log.epoch_log import list_accepting_epochs, newest_epochs
from seamline.lake.storage.layout import Layout, locate_tables
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.evolution import Timed
from seamline.model.time.intervals import Grid, Interval, parse_moment
from seamline.model.time.window_arithmetic import count_reached_intervals
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.publish.awaited_intervals import Awaited, Readiness, Until, assess


@dataclass
class Watch:
    """One wait: what for, and where. It runs no definition: another process goes on by what ``to_json`` says."""

    awaited: Awaited
    """What is waited for."""
    layout: Layout
    """The pipeline's tables."""
    timed: Timed
    """The clock of the definition's event times."""
    filled: set[str] = field(default_factory=set)
    """Ids of intervals that are known to have rows."""
    asked: set[str] = field(default_factory=set)
    """Ids of intervals of which it is known whether they have rows: they were closed when that was asked."""
    seen: tuple[str, str] | None = None
    """Record version and clock of the newest epoch at the last look."""
    outdated: bool = False
    """Whether the log has gone on by another clock than the definition's: it was edited since."""

    @classmethod
    def of(
        cls, pipeline: CompiledPipeline, layout: Layout, view_name: str, span: Interval, until: Until
    ) -> Self:
        """Prepare to wait for a view's intervals; NotFound for a view that is not there, BadRange for a span."""
        _, view = find_served_version(pipeline, layout, find_view(pipeline, layout, view_name))
        awaited = Awaited(
            view.name,
            pipeline.grid,
            span,
            until,
            ahead=view.after,
            reach=count_reached_intervals(view.windows, view.interval // MICROSECOND),
            emits=view.span > pipeline.grid.length,
        )
        return cls(awaited, layout, pipeline.timed)

    def look(self) -> Readiness:
        """Look at the tables once: what was read before and has not changed is not read again."""
        newest = next(iter(newest_epochs(self.layout, 1)), None)
        if newest and self.seen != (now := (newest.record_version, newest.clock)):
            self.outdated = self.seen is not None and not self.timed.is_of_clock(newest)
            self.seen = now
        watermark = self.timed.watermark_at(newest)
        manifest = manifest_of(self.layout)
        found = assess(self.awaited, manifest, newest, watermark)
        if not found.unbuilt or self.awaited.emits:
            return found
        if unknown := {id for each in found.unbuilt for id in self.awaited.feeding(each)} - self.asked:
            brought = list_accepting_epochs(self.layout, unknown)
            self.filled |= unknown.intersection(id for epoch in brought for id in epoch.accepted)
            self.asked |= unknown
        return assess(self.awaited, manifest, newest, watermark, self.filled)

    def to_json(self) -> dict[str, Any]:
        """Write it for another process."""
        awaited = self.awaited
        return {
            "pipeline": self.layout.pipeline,
            "warehouse": str(self.layout.warehouse),
            "view": awaited.view,
            "span": str(awaited.span),
            "until": awaited.until.value,
            "length": awaited.grid.length.total_seconds(),
            "start": awaited.grid.start.isoformat(),
            "ahead": awaited.ahead.total_seconds(),
            "reach": awaited.reach,
            "emits": awaited.emits,
            "clock": [self.timed.version, self.timed.clock],
            "seen": self.seen,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` wrote."""
        awaited = Awaited(
            row["view"],
            Grid(timedelta(seconds=row["length"]), parse_moment(row["start"])),
            Interval.parse(row["span"]),
            Until(row["until"]),
            timedelta(seconds=row["ahead"]),
            row["reach"],
            row["emits"],
        )
        seen = row.get("seen")
        return cls(
            awaited,
            locate_tables(row["pipeline"], row["warehouse"]),
            Timed(*row["clock"]),
            seen=tuple(seen) if seen else None,
        )
