"""Producers' counts for people and programs: intervals as they are now, and records that are no statements."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from seamline.kernel.refused_places import place_refused_records
from seamline.lake.audit.counted_intervals import CountedInterval, count_intervals, find_counted_span
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.counts.statements_table import read_bad_statements
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.errors import BadRange, NotFound
from seamline.model.time.intervals import Interval
from seamline.plan.wording.counts_text import format_bad_statements

MOST = 400
"""How many intervals are counted at once."""
SHOWN_FOR = timedelta(days=7)
"""For how long a record that is no statement is shown after it was taken."""


def require_counting(pipeline: CompiledPipeline) -> None:
    """Raise NotFound where no source has a topic of statements."""
    if not list_counting_sources(pipeline):
        raise NotFound(
            f"No source of {pipeline.name} has counts=, so producers' statements are not read.",
            hint='declare the topic of the statements: KafkaSource(..., counts=Counts("orders.counts")).',
        )


def list_counted_intervals(
    pipeline: CompiledPipeline, layout: Layout, span: Interval | None = None
) -> list[CountedInterval]:
    """Count the intervals of a span, or the last seven; BadRange for a span of too many."""
    if span and span.end - span.start > MOST * pipeline.grid.length:
        raise BadRange(
            f"{span} has more than {MOST} intervals.", hint="each is counted anew: ask for fewer at a time."
        )
    if not list_counting_sources(pipeline):
        return []
    span = span or find_counted_span(pipeline, layout)
    return [*count_intervals(pipeline, layout, span, partial(place_refused_records, layout))] if span else []


def list_bad_lines(
    pipeline: CompiledPipeline, layout: Layout, *, now: datetime | None = None
) -> Iterator[str]:
    """List the records that are no statements, of those that were taken in the last week."""
    now = now or datetime.now(UTC)
    taken = Interval(now - SHOWN_FOR, now + timedelta(seconds=1))
    for source, counts in list_counting_sources(pipeline):
        yield from format_bad_statements(counts.topic, read_bad_statements(layout, source.name, taken))
