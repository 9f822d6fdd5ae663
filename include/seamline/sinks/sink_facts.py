"""How the sinks of a pipeline are, read from the copies of their positions and from what their process says."""

from __future__ import annotations

from datetime import datetime

from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_positions import read_known_copy
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.sink_facts import SinkFacts
from seamline.plan.stream.sink_verdicts import find_open_verdict
from seamline.sinks.feeds import open_feed
from seamline.sinks.sink_states import FAILED, SILENT_AFTER, read_sink_state

SILENT = "silent"


def read_sink_facts(pipeline: CompiledPipeline, layout: Layout, now: datetime) -> tuple[SinkFacts, ...]:
    """Read how each sink of the definition is."""
    return tuple(read_facts(pipeline, layout, sink, now) for sink in pipeline.definition.sinks)


def read_facts(pipeline: CompiledPipeline, layout: Layout, sink: AnySink, now: datetime) -> SinkFacts:
    """Read how one sink is."""
    newest = open_feed(pipeline, layout, sink).find_newest()
    copy, words = read_known_copy(layout, sink.id), read_sink_words(pipeline.name, sink.id)
    told = read_sink_state(pipeline, layout, sink, now)
    position = copy.position if copy else None
    again = position.again if position else None
    silent = words and words.state not in FAILED and now - parse_moment(words.at) >= SILENT_AFTER
    return SinkFacts(
        name=sink.id,
        view=sink.sends,
        target=sink.name_target(pipeline.name),
        when=sink.when if isinstance(sink, Sink) else "",
        state=SILENT if silent else words.state if words else "",
        up=told.up,
        version=position.version if position and position.version >= 0 else None,
        newest=newest if newest >= 0 else None,
        toward=position.toward if position else None,
        rows=position.rows if position else 0,
        again=str(again) if again else "",
        again_rows=again.done if again else 0,
        at=copy.at if copy else None,
        behind_seconds=told.behind_seconds,
        sent=told.sent,
        error=words.error if words else "",
        audit=told.audits[0] if told.audits else None,
        wrong=find_open_verdict(told.audits),
    )
