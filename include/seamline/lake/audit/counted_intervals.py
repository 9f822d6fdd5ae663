"""Producers' counts of many intervals as they are now, beside what the newest certificate of each says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from seamline.lake.audit.producer_counts import Place, count_producers
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.counts.statements_table import list_stated_starts
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.protocol.counts.comparison import SourceCounts
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import LAST, Interval

AT_ONCE = 50
"""Intervals whose certificates are read together."""


@dataclass(frozen=True)
class CountedInterval:
    """One source's interval."""

    interval: Interval
    """The interval."""
    closed: bool
    """Whether the watermark has passed its end."""
    counts: SourceCounts
    """What is there now, and what was said of it by now."""
    certified: SourceCounts | None
    """What the newest certificate of any view says; None where there is none."""
    run: str
    """The run of that certificate; empty for none."""

    @property
    def changed(self) -> bool:
        """Whether the certificate says something else of producers."""
        if self.certified is None:
            return False
        return replace(self.counts, unplaced=0, others=0) != replace(self.certified, unplaced=0, others=0)

    @property
    def alarming(self) -> bool:
        """Whether something contradicts what was read: of an open interval nobody can say that yet."""
        return self.closed and not self.counts.only_unstated


def find_counted_span(
    pipeline: CompiledPipeline, layout: Layout, count: int = 7, *, now: datetime | None = None
) -> Interval | None:
    """Find the span of the last intervals that have rows, or statements after them; None if there is none.

    A statement about a time that is to come, which nothing takes back, does not move it.
    """
    with_rows = {id for epoch in read_reprocessed_log(pipeline, layout) for id in epoch.accepted}
    ends = [pipeline.grid.named(id).end for id in with_rows]
    after, now = max(ends, default=pipeline.grid.start), now or datetime.now(UTC)
    for source, _ in list_counting_sources(pipeline) if after < now else ():
        starts = list_stated_starts(layout, source.name, Interval(after, now))
        ends += [pipeline.grid.of(starts[-1]).end] if starts else []
    if not ends:
        return None
    end = max(ends)
    return Interval(max(end - count * pipeline.grid.length, pipeline.grid.start), end)


def count_intervals(
    pipeline: CompiledPipeline, layout: Layout, span: Interval | None, place: Place
) -> Iterator[CountedInterval]:
    """Count every interval in a span, or of all times, that has rows or statements; in order, source by source."""
    epochs = read_reprocessed_log(pipeline, layout)
    watermark = epochs[-1].watermark if epochs else None
    for source, _ in list_counting_sources(pipeline):
        cut = epochs[-1].number if epochs else -1
        told = list_told_intervals(pipeline, layout, source.name, epochs, span)
        for first in range(0, len(told), AT_ONCE):
            intervals = told[first : first + AT_ONCE]
            known = find_certified_counts(layout, source.name, intervals)
            for interval in intervals:
                counts = count_producers(pipeline, layout, source.name, interval, cut, epochs, place)
                certified, run = known.get(interval.id, (None, ""))
                closed = watermark is not None and watermark >= interval.end
                yield CountedInterval(interval, closed, counts, certified, run)


def list_told_intervals(
    pipeline: CompiledPipeline, layout: Layout, source: str, epochs: Sequence[Epoch], span: Interval | None
) -> list[Interval]:
    """List the intervals of a span that have rows, or of which a producer says something."""
    grid = pipeline.grid
    asked = span or Interval(grid.start, LAST)
    starts: set[datetime] = {grid.of(at).start for at in list_stated_starts(layout, source, asked)}
    starts |= {grid.named(id).start for epoch in epochs for id in epoch.accepted}
    return [grid.of(start) for start in sorted(starts) if start in asked]


def find_certified_counts(
    layout: Layout, source: str, intervals: Sequence[Interval]
) -> dict[str, tuple[SourceCounts, str]]:
    """Find by interval id what its newest certificate that tells of a source's producers says, and that one's run."""
    if not Table.exists(layout.table("certificates")):
        return {}
    found: dict[str, tuple[SourceCounts, str]] = {}
    for certificate in Certificates.ensure(layout).of_intervals([each.id for each in intervals]):
        for each in certificate.counts:
            if each.source == source:
                found[certificate.interval.id] = each, certificate.run
    return found
