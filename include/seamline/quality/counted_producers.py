"""Producers' counts for the certificates of a run: each source's interval is counted once, whatever views it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from seamline.kernel.refused_places import place_refused_records
from seamline.lake.audit.producer_counts import count_producers
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.counts.counting_sources import find_patience, list_counts_of_view
from seamline.model.protocol.counts.comparison import SourceCounts
from seamline.model.protocol.counts.verdict import Awaited, await_counts
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import Interval


@dataclass(frozen=True)
class CountedProducers:
    """What was counted so far for one run."""

    pipeline: CompiledPipeline
    """Whose producers they are."""
    layout: Layout
    """Where its tables are."""
    epochs: Sequence[Epoch]
    """The log."""
    known: dict[tuple[str, str, int], SourceCounts] = field(default_factory=dict)
    """By source, interval id and cut."""

    def list_awaited(self, view: CompiledView, interval: Interval, cut: int) -> list[Awaited]:
        """Count what a view's interval is made of, by source, beside what the certificate waits for."""
        return [
            await_counts(
                self.count(source.name, interval, cut),
                interval.end,
                required=counts.required,
                patience=find_patience(counts),
            )
            for source, counts in list_counts_of_view(self.pipeline, view)
        ]

    def count(self, source: str, interval: Interval, cut: int) -> SourceCounts:
        """Count one source's interval up to a cut."""
        at = source, interval.id, cut
        if at not in self.known:
            place = partial(place_refused_records, self.layout)
            self.known[at] = count_producers(
                self.pipeline, self.layout, source, interval, cut, self.epochs, place
            )
        return self.known[at]
