"""Sentences about what a pipeline reads: its topics, how their records are read, and the bounds of event times."""

from __future__ import annotations

from seamline.model.compile.defaults import describe_time_bounds
from seamline.model.compile.sources import has_several, list_narrowed
from seamline.model.definition.formats import format_of
from seamline.model.definition.pipeline import KafkaSource, Pipeline
from seamline.plan.spelling import format_quantity


def list_time_bounds(pipeline: Pipeline) -> list[str]:
    """List which bounds of event times are in force, a line for each of several sources."""
    if not has_several(pipeline):
        return [describe_time_bounds(pipeline)]
    return [f"{each.only_source.name}: {describe_time_bounds(each)}" for each in list_narrowed(pipeline)]


def list_source_lines(pipeline: Pipeline) -> list[str]:
    """List what is read by which connection, then the bounds of each source; several are listed by name."""
    if not has_several(pipeline):
        topics = ", ".join(pipeline.topics)
        return [f"topic {topics} by connection {pipeline.connection}", describe_time_bounds(pipeline)]
    found = [f"{format_quantity(len(pipeline.sources), 'source')} by connection {pipeline.connection}"]
    for each in list_narrowed(pipeline):
        found += [
            f"source {each.only_source.name}: {describe_source(each.only_source)}",
            f"  {describe_time_bounds(each)}",
        ]
    return found


def describe_source(source: KafkaSource) -> str:
    """Say what a source reads, and what its event time is."""
    topics = f"topic{'s' * (len(source.topics) > 1)} {', '.join(source.topics)}"
    return f"{topics} as {format_of(source.format).kind}, event time {source.event_time}"


def list_source_facts(pipeline: Pipeline) -> list[tuple[str, str]]:
    """List what is read, source by source, with its bounds, for a page; the source of one alone has no name."""
    return [
        ("connection", pipeline.connection),
        *(
            (each.only_source.name or "source", f"{describe_source(each.only_source)}; {bounds}")
            for each in list_narrowed(pipeline)
            for bounds in [describe_time_bounds(each)]
        ),
    ]
