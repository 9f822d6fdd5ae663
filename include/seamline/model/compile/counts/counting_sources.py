"""The sources whose producers say what they sent, and the views that are made of their records."""

from __future__ import annotations

from datetime import timedelta

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.sources import split_process_name
from seamline.model.definition.counts import Counts
from seamline.model.definition.sources import Source
from seamline.model.time.intervals import parse_duration


def list_counting_sources(pipeline: CompiledPipeline) -> list[tuple[Source, Counts]]:
    """List the sources whose producers say how many records they have sent."""
    return [(each, each.counts) for each in pipeline.definition.sources if each.counts]


def list_counts_of_view(pipeline: CompiledPipeline, view: CompiledView) -> list[tuple[Source, Counts]]:
    """List those of them whose records the rows of a view are made of."""
    names = {split_process_name(each)[0] for each in view.of}
    derived = {each.name: each.sources for each in pipeline.definition.derive}
    made_of = names.union(*(derived[name] for name in names & derived.keys()))
    return [
        (source, counts)
        for source, counts in list_counting_sources(pipeline)
        if not names or source.name in made_of
    ]


def find_patience(counts: Counts) -> timedelta | None:
    """Return for how long after its end an interval waits for statements that are missing; None for ever."""
    return parse_duration(counts.grace) if counts.grace else None
