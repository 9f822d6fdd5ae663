"""A target that is read beside the sink that writes it, and the versions of the serving table that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.served_versions import ServedVersion, ServedVersions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import NotFound, OutOfStep, SetupError
from seamline.model.protocol.sinks.marks import Mark, split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.readable_target import ReadableTarget, Reading
from seamline.sinks.row_shape import RowShape
from seamline.sinks.sending import find_view
from seamline.sinks.target import Target
from seamline.sinks.targets import open_target

Opening = Callable[[Sink, CompiledView], Target]


@dataclass(frozen=True)
class OpenedTarget:
    """A target that is read."""

    target: ReadableTarget
    """By whose form rows are spelled; it is not taken over."""
    reading: Reading
    """The connection."""
    view: CompiledView
    """The version of the view that it shows."""
    position: SinkPosition | None
    """Where it stood when it was opened."""

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return RowShape.of(self.view).identity


@contextmanager
def open_to_read(
    pipeline: CompiledPipeline,
    layout: Layout,
    sink: Sink,
    versions: ServedVersions,
    opening: Opening = open_target,
) -> Iterator[OpenedTarget]:
    """Open a target for the version of the view that it shows; SetupError where its kind cannot be read."""
    wanted = versions.read(versions.find_newest()).view
    while True:
        view = find_view(pipeline, layout, sink.view, wanted) if wanted else pipeline.view(sink.view)
        if view is None:
            raise NotFound(f"Version {wanted} of {sink.view} is shown, and nobody knows its columns.")
        target = opening(sink, view)
        if not isinstance(target, ReadableTarget):
            raise SetupError(
                f"Sink {sink.id} writes to {sink.name_target(pipeline.name)}, which cannot be read back.",
                hint="what it holds is as its position says: `seamline sinks list`.",
            )
        with closing(target), target.open_reading() as reading:
            position = reading.find_position()
            shown = find_shown_view(position)
            if shown in ("", view.fingerprint):
                yield OpenedTarget(target, reading, view, position)
                return
        wanted = shown


def find_shown_view(position: SinkPosition | None) -> str:
    """Return the fingerprint of the view version that a target shows, or is about to; empty where nobody knows."""
    marks = [Mark.parse(each) for each in split_marks(position.fingerprint) if each] if position else []
    return marks[-1].view if marks else ""


def read_shown_versions(
    versions: ServedVersions, position: SinkPosition, sink: str
) -> tuple[ServedVersion | None, ServedVersion | None]:
    """Read the version that a target shows, and the one on the way to which it is; OutOfStep if they are others now."""
    numbers = (None if position.version < 0 else position.version, position.toward)
    found = []
    for number, mark in zip(numbers, split_marks(position.fingerprint), strict=True):
        version = None if number is None else versions.read(number)
        if version and mark and Mark.parse(mark).commit != version.commit:
            raise OutOfStep(
                f"Sink {sink} has sent another version {version.number} than its serving table has now.",
                hint="the table was restored or made again: `seamline sinks resend` writes everything anew.",
            )
        found.append(version)
    return found[0], found[1]
