"""Which intervals a version may have rows in, and whether rows have come that what is published does not know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from seamline.lake.publish.derived_changes import read_derived_arrivals
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.reached_intervals import find_spanning_views, list_shown_intervals
from seamline.plan.batch.interval_arrivals import Arrivals, by_arrival


@dataclass(frozen=True)
class KnownIntervals:
    """The intervals of a log."""

    accepted: Mapping[str, Mapping[int, int]]
    """Accepted rows by the epoch that brought them, by the interval's id."""
    filled: Mapping[str, Collection[str]]
    """Ids of intervals, up to the watermark, by those versions that may have rows where none were accepted."""
    derived: Mapping[str, Arrivals]
    """The changes of versions whose rows are derived, by interval."""

    @classmethod
    def read(
        cls,
        pipeline: CompiledPipeline,
        layout: Layout,
        versions: Collection[CompiledView],
        epochs: Sequence[Epoch],
    ) -> KnownIntervals:
        """Read the intervals of ``epochs``, which are split for the versions."""
        accepted, grid = by_arrival(epochs), pipeline.grid
        spanning = find_spanning_views(grid, versions)
        mark = max((each.watermark for each in epochs if each.watermark), default=None)
        filled = {id: list_shown_intervals(grid, view, accepted, mark) for id, view in spanning.items()}
        return cls(accepted, filled, read_derived_arrivals(pipeline, layout, epochs))

    def of(self, view: str) -> Collection[str]:
        """Return the ids of the intervals in which a version may have rows."""
        return self.filled.get(view, self.accepted.keys())

    @property
    def all(self) -> list[str]:
        """The ids of all intervals, in order."""
        return sorted({*self.accepted}.union(*self.filled.values()))

    def has_news(self, view: str, interval: str, cut: int) -> bool:
        """Return whether rows came above a cut that changed what a version has in an interval."""
        if view in self.derived:
            return self.derived[view].since(interval, after=cut) > NOTHING
        return any(number > cut and rows for number, rows in self.accepted.get(interval, {}).items())
