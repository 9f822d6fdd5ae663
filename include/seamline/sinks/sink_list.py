"""The sinks of a pipeline, for people: where each writes to, how far it is, and how one is written anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_positions import (
    SinkCopy,
    forget_copy,
    list_copied_sinks,
    read_known_copy,
    replace_copy,
)
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.model.errors import BadRange, NotFound, SeamlineError, SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.time.intervals import format_utc_instant
from seamline.sinks.feeds import ViewFeed, open_feed
from seamline.sinks.letters.letter_target import LetterTarget, open_letters
from seamline.sinks.target import Target
from seamline.sinks.targets import open_target


def format_sinks(pipeline: CompiledPipeline, layout: Layout) -> Iterator[str]:
    """Describe each sink in a line, and those that the definition has no longer."""
    declared = {each.id: each for each in pipeline.definition.sinks}
    copied = list_copied_sinks(layout)
    for sink in declared.values():
        yield format_sink(pipeline, layout, sink)
    for name in copied:
        if name not in declared:
            yield f"{name}: no longer in the definition; `seamline sinks drop {pipeline.name} {name}` lets go of it"
    if not declared and not copied:
        yield f"{pipeline.name} has no sinks"


def format_sink(pipeline: CompiledPipeline, layout: Layout, sink: AnySink) -> str:
    """Describe one sink."""
    what = f"{sink.view} when={sink.when}" if isinstance(sink, Sink) else f"{sink.sends} records"
    newest, copy = open_feed(pipeline, layout, sink).find_newest(), read_known_copy(layout, sink.id)
    told = format_position(copy, newest) if isinstance(sink, Sink) else format_letters(copy, newest)
    said = [f"{sink.id}: {what} to {sink.name_target(pipeline.name)}", told]
    words = read_sink_words(pipeline.name, sink.id)
    if words is not None:
        said.append(f"{words.state} at {words.at}, {words.sent} changes sent by that process")
        if words.error:
            said.append(words.error)
    return "; ".join(said)


def format_position(copy: SinkCopy | None, newest: int) -> str:
    """Say which version a target shows, and which one is the newest."""
    if newest < 0:
        return "nothing is served yet"
    if copy is None:
        return f"nothing sent yet of version {newest}"
    position = copy.position
    underway = "" if position.toward is None else f", {position.rows} changes on the way to {position.toward}"
    held = "no version" if position.version < 0 else f"version {position.version}"
    behind = newest - position.version
    again = f"; {position.again} is sent again, {position.again.done} rows so far" if position.again else ""
    shown = f"shows {held}{underway}" + (f" of {newest}" if behind else ", the newest")
    return f"{shown} as of {copy.at}{again}"


def format_letters(copy: SinkCopy | None, newest: int) -> str:
    """Say up to which epoch of the log a topic has dead letters, and which one is the newest."""
    if newest < 0:
        return "nothing is read yet"
    if copy is None:
        return f"nothing sent yet of epochs up to {newest}"
    position = copy.position
    underway = (
        "" if position.toward is None else f", and {position.rows} records of those up to {position.toward}"
    )
    behind = f" of {newest}" if newest - position.version else ", the newest"
    held = "has none yet" if position.version < 0 else f"has those up to epoch {position.version}"
    return f"{held}{underway}{behind} as of {copy.at}"


def clear_target(pipeline: CompiledPipeline, layout: Layout, sink: AnySink) -> None:
    """Take over a sink's target, and clear it: whoever runs the sink writes it anew."""
    refused: SetupError | None = None
    copy = read_known_copy(layout, sink.id)
    with closing(open_any_target(pipeline, sink)) as target:
        try:
            target.take_over()
        except SetupError as problem:
            # What is there may have no position, or one that cannot be read: that is what is cleared.
            refused = problem
        if copy is not None and isinstance(sink, Sink) and copy.view != sink.view:
            # It keeps files of a view that the sink no longer sends, in the place of the copy that it has to begin.
            forget_copy(layout, sink.id)
            copy = None
        try:
            target.clear()
        except SeamlineError:
            if refused is not None:
                raise refused from None
            raise
    if copy is not None:
        # Whoever runs the sink sees that it is another, and takes over: there may be nothing new to send for long.
        replace_copy(layout, sink.id, replace(copy, at=format_utc_instant(datetime.now(UTC))))


def open_any_target(pipeline: CompiledPipeline, sink: AnySink) -> Target | LetterTarget:
    """Open the target of a sink of any kind."""
    if isinstance(sink, DeadLetterSink):
        return open_letters(sink, pipeline.name)
    assert isinstance(sink, Sink)
    view = pipeline.view(sink.view)
    assert view is not None
    return open_target(sink, view)


def ask_for_range(
    pipeline: CompiledPipeline, layout: Layout, sink: AnySink, asked: RangeAgain
) -> SinkPosition | None:
    """Take over a sink's target, and write beside its position that a range is to be sent again.

    Whoever runs the sink takes it over from here, and does so. None for a target to which all is still to be sent.
    BadRange for records, which have no windows.
    """
    feed = open_feed(pipeline, layout, sink)
    if not isinstance(sink, Sink) or not isinstance(feed, ViewFeed):
        raise BadRange(
            f"{sink.id} sends records, which are of no window.",
            hint="without --from all are sent anew; `seamline sinks replay` produces them again.",
        )
    if feed.find_newest() < 0:
        raise NotFound(
            f"Nothing is served yet of {pipeline.name}.{sink.view}.", hint="there is nothing to send."
        )
    sending = feed.take_over("", lambda: False)
    with closing(sending.target):
        if sending.position is None:
            return None
        position = sending.position.ask_again(asked)
        sending.target.write((), position)
        sending.told.replace(sending.make_copy(position))
        return position
