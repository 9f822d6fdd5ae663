"""What a sink is told of: versions of a serving table, or epochs of the log. Either is sent in its own way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from seamline.lake.log.epochs_from import list_epochs_from, read_newest_epoch
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.sinks.served_versions import ServedVersions, read_commit_time
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.model.errors import NotFound
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.letters.letter_sending import LetterSending, LetterTaker
from seamline.sinks.letters.letter_target import open_letters
from seamline.sinks.sending import Sending, find_view
from seamline.sinks.target import Target
from seamline.sinks.targets import open_target
from seamline.sinks.told_copy import ToldCopy

Stopping = Callable[[], bool]
Opening = Callable[..., Any]
"""Opens the target of a sink: of one of a view by its version, of dead letters by the pipeline's name."""


class Closing(Protocol):
    """What holds a connection."""

    def close(self) -> None:
        """Let go of it; never raises."""


class AnySending(Protocol):
    """A sink that has taken over its target."""

    position: SinkPosition | None
    """Where the target stands."""
    sent: int
    """Changes that were sent since."""
    told: ToldCopy
    """What the warehouse is told of it."""
    wanted: str
    """The version of the view for which the target is to be opened before it is gone on; empty for none."""

    @property
    def target(self) -> Closing:
        """The target."""

    @property
    def shown(self) -> int:
        """The version, or the epoch, that the target shows; NOTHING for none."""

    def send_next(self) -> bool:
        """Go one step; false if the target shows the newest."""


class Feed(Protocol):
    """Where a sink finds what is new."""

    root: Location
    """The folder of the table that is looked at."""

    @property
    def newest(self) -> int:
        """The newest version, or epoch, that was seen; -1 for none."""

    def find_newest(self) -> int:
        """Look for the newest version, or epoch; -1 for none."""

    def find_time(self, number: int) -> datetime | None:
        """Look when a version, or an epoch, was committed; None if nobody knows any more."""

    def take_over(self, wanted: str, stopping: Stopping) -> AnySending:
        """Open the target, for a version of the view if one is wanted, and fence all earlier writers."""


class ViewFeed:
    """The versions of a view's serving table."""

    def __init__(
        self,
        pipeline: CompiledPipeline,
        layout: Layout,
        sink: Sink,
        opening: Callable[[Sink, CompiledView], Target],
    ) -> None:
        view = pipeline.view(sink.view)
        assert view is not None
        self.pipeline, self.layout, self.sink, self.view = pipeline, layout, sink, view
        self.opening, self.root = opening, layout.serving(view)
        self.versions = ServedVersions(self.root)

    @property
    def newest(self) -> int:
        return self.versions.newest

    def find_newest(self) -> int:
        return self.versions.find_newest()

    def find_time(self, number: int) -> datetime | None:
        return read_commit_time(self.root, number)

    def take_over(self, wanted: str, stopping: Stopping) -> Sending:
        shown = wanted or self.versions.read(self.versions.find_newest()).view
        view = find_view(self.pipeline, self.layout, self.sink.view, shown) if shown else self.view
        if view is None:
            raise NotFound(
                f"Version {shown} of {self.view.qualified} is shown, and nobody knows its columns.",
                hint="it cannot be made from its stored definition; `seamline status` says why.",
            )
        target = self.opening(self.sink, view)
        try:
            return Sending(self.pipeline, self.layout, self.sink, self.versions, view, target, stopping)
        except BaseException:
            target.close()
            raise


class LogFeed:
    """The epochs of the log."""

    def __init__(
        self,
        pipeline: str,
        layout: Layout,
        sink: DeadLetterSink,
        opening: Callable[[DeadLetterSink, str], LetterTaker],
    ) -> None:
        self.pipeline, self.layout, self.sink, self.opening = pipeline, layout, sink, opening
        self.root, self.newest = layout.table("master"), -1

    def find_newest(self) -> int:
        self.newest = read_newest_epoch(self.layout)
        return self.newest

    def find_time(self, number: int) -> datetime | None:
        found = list_epochs_from(self.layout, number, 1)
        return found[0].committed_at if found else None

    def take_over(self, wanted: str, stopping: Stopping) -> LetterSending:
        target = self.opening(self.sink, self.pipeline)
        try:
            return LetterSending(self.pipeline, self.layout, self.sink, target, stopping)
        except BaseException:
            target.close()
            raise


def open_feed(
    pipeline: CompiledPipeline, layout: Layout, sink: AnySink, opening: Opening | None = None
) -> Feed:
    """Open what a sink is told of."""
    if isinstance(sink, DeadLetterSink):
        return LogFeed(pipeline.name, layout, sink, opening or open_letters)
    assert isinstance(sink, Sink)
    return ViewFeed(pipeline, layout, sink, opening or open_target)
