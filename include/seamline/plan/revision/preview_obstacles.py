"""What a preview cannot make again in a process of its own, from the records of a few intervals."""

from __future__ import annotations

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import PROCESSING_TIME


def find_view_obstacle(before: CompiledPipeline, pipeline: CompiledPipeline, view: CompiledView) -> str:
    """Say why no interval of a view can be made again; empty if they can.

    ``before`` is the pipeline of the version that is served.
    """
    if before.grid != pipeline.grid:
        return "its intervals are others than those of what is served"
    if view.counts:
        return "its windows are of so many events, and depend on all rows before them"
    if view.changelog:
        return "it follows a table whose changes depend on all rows before them"
    return ""


def find_record_obstacle(before: CompiledPipeline, pipeline: CompiledPipeline) -> str:
    """Say why records that mean something else now cannot be validated again for a sample; empty if they can."""
    if before.clock != pipeline.clock:
        return "the event time is made in another way, so that a record may be in any interval"
    if any(each.event_time == PROCESSING_TIME for each in pipeline.definition.sources):
        return "records mean something else now, and their event time is that of their processing"
    if pipeline.record.dedup:
        return "records mean something else now, and the stream removes duplicates"
    if pipeline.lookups:
        return "records mean something else now, and look-ups are in their rows"
    return ""
