"""How the sinks of a pipeline do, in numbers: from what their process says, and from the copies of their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_audits import read_verdicts
from seamline.lake.tables.sinks.recorded_positions import SinkCopy, read_known_copy
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.sink_verdicts import SinkVerdict, find_open_verdict
from seamline.sinks.feeds import Feed, open_feed

SILENT_AFTER = timedelta(seconds=60)
"""How long the process of sinks may say nothing before it is taken for dead: one that waits says so each second."""
FAILED = ("failed", "fenced off", "ended")


@dataclass(frozen=True)
class SinkState:
    """One sink."""

    sink: str
    """Its name."""
    up: bool
    """Whether its process says that it sends, or waits for what is new; of another machine's nothing is known."""
    behind: int | None
    """Versions of the serving table from the one that the target shows to the newest, of dead letters epochs of the
    log; None if there is none yet."""
    behind_seconds: float | None
    """The age of the first version, or epoch, that the target does not show, in seconds; 0 if it shows the newest, None
    if nothing was sent yet."""
    sent: int | None
    """Changes that the process has sent since it was started."""
    audits: Sequence[SinkVerdict] = ()
    """What its last audits have found, the newest first."""

    @property
    def audited_at(self) -> datetime | None:
        """When it was audited last; None if it never was."""
        return parse_moment(self.audits[0].at) if self.audits else None

    @property
    def wrong(self) -> int | None:
        """Rows, or files, that an audit found wrong and no later one right; None if there was none."""
        still = find_open_verdict(self.audits)
        return (sum(still.found.values()) if still else 0) if self.audits else None


@dataclass(frozen=True)
class PipelineSinks:
    """The sinks of a pipeline."""

    pipeline: str
    """Its name."""
    sinks: Sequence[SinkState]
    """In the order of the definition."""


def read_sink_states(pipeline: CompiledPipeline, layout: Layout, now: datetime) -> PipelineSinks:
    """Read how each sink of the definition does."""
    found = [read_sink_state(pipeline, layout, sink, now) for sink in pipeline.definition.sinks]
    return PipelineSinks(pipeline.name, found)


def read_sink_state(pipeline: CompiledPipeline, layout: Layout, sink: AnySink, now: datetime) -> SinkState:
    """Read how one sink does."""
    feed = open_feed(pipeline, layout, sink)
    newest, copy = feed.find_newest(), read_known_copy(layout, sink.id)
    words = read_sink_words(pipeline.name, sink.id)
    behind = newest - (copy.position.version if copy else -1) if newest >= 0 else None
    alive = words is not None and words.state not in FAILED and now - parse_moment(words.at) < SILENT_AFTER
    return SinkState(
        sink.id,
        alive,
        behind,
        find_lag(feed, copy, now) if behind else 0.0,
        words.sent if words else None,
        read_verdicts(layout, sink.id) if isinstance(sink, Sink) else (),
    )


def find_lag(feed: Feed, copy: SinkCopy | None, now: datetime) -> float | None:
    """Find for how many seconds there has been something that a target does not show; None if nothing was sent yet.

    One that is on the way from nothing counts from its last step, as does one whose next version nobody knows any more.
    """
    if copy is None:
        return None
    shown = copy.position.version
    since = feed.find_time(shown + 1) if shown >= 0 else None
    return max((now - (since or parse_moment(copy.at))).total_seconds(), 0.0)
