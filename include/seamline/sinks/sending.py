"""Brings one target from where it stands to the newest version of a serving table, a step at a time (rule 32)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from seamline.lake.read.sinks.served_changes import Comparison, RowChanges, iterate_changes
from seamline.lake.read.sinks.shown_rows import ShownRows, StartRange
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.sinks.recorded_positions import SinkCopy
from seamline.lake.tables.sinks.served_versions import ServedVersion, ServedVersions
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import NotFound, OutOfStep, SeamlineError
from seamline.model.protocol.sinks.marks import Mark, split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.protocol.sinks.steps import NOTHING, SinkStep, find_range_due, plan_step
from seamline.model.time.intervals import format_utc_instant
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.audit.strays import delete_strays
from seamline.sinks.lasts import with_last
from seamline.sinks.readable_target import RewritingTarget
from seamline.sinks.target import ChangeBatch, Target
from seamline.sinks.told_copy import ToldCopy

log = logging.getLogger("seamline.sinks")
T = TypeVar("T")
MOST_BATCHES, MOST_BYTES = 8, 32 << 20
"""Batches of changes that are one transaction, and their bytes in memory but for the last one's."""


@dataclass(frozen=True)
class Ends:
    """Both versions of a step, with what identifies their rows."""

    before: ServedVersion | None
    """The one that the target shows; None for nothing."""
    after: ServedVersion
    """The one that it shall show."""
    places: tuple[str, ...]
    """The columns that identify a row of the later one."""
    comparable: bool
    """Whether those of the earlier one are the same, and the target may have the columns of both."""


class Sending:
    """One sink that has taken over its target."""

    def __init__(
        self,
        pipeline: CompiledPipeline,
        layout: Layout,
        sink: Sink,
        versions: ServedVersions,
        view: CompiledView,
        target: Target,
        stopping: Callable[[], bool],
    ) -> None:
        self.pipeline, self.layout, self.sink, self.versions = pipeline, layout, sink, versions
        self.view, self.target, self.stopping = view, target, stopping
        self.wanted = ""
        """The fingerprint of the view version for which the target is to be opened before it is gone on; empty for
        the one that it is open for."""
        self.sent = 0
        self.position = target.take_over()
        self.told = ToldCopy(layout, sink.id)
        hit_failpoint("sink_taken")
        marks = filter(None, split_marks(self.position.fingerprint) if self.position else ())
        if any(Mark.parse(mark).form != sink.form for mark in marks):
            self.begin_anew("what is sent of a row is another")

    @property
    def shown(self) -> int:
        """The version that the target shows, NOTHING for none."""
        return NOTHING if self.position is None else self.position.version

    def send_next(self) -> bool:
        """Go one step, or a part of it where it is to be stopped; false if the target shows the newest version."""
        newest = self.versions.find_newest()
        if NOTHING < newest < self.shown:
            raise self.explain_loss(
                f"it shows version {self.shown} of a serving table whose newest is {newest}"
            )
        due = find_range_due(self.position)
        step = plan_step(self.position, newest) if newest > NOTHING else None
        if due is not None:
            step = SinkStep(self.shown, self.shown)
        if step is None:
            return False
        ends = self.read_ends(step)
        if ends.after.view not in ("", self.view.fingerprint):
            self.wanted = ends.after.view
            return False
        if self.position is not None and not ends.comparable:
            self.begin_anew("what identifies a row is another, or the type of a column")
            return True
        if self.position is None:
            self.told.begin(self.make_copy(step.reach("", "", 0, whole=False)))
            # Files of a version that was replaced meanwhile may be gone before the copy could keep them.
            if self.versions.find_newest() != step.end:
                return True
        self.versions.settle()
        try:
            if due is not None:
                self.send_range(due, ends)
            else:
                self.send_step(step, ends)
        except NotFound as gone:
            raise self.explain_loss(gone.message) from gone
        return True

    def read_ends(self, step: SinkStep) -> Ends:
        """Read both versions of a step; OutOfStep if one of them is gone, or is not what the target shows."""
        try:
            before = None if step.start == NOTHING else self.versions.read(step.start)
            after = self.versions.read(step.end)
        except NotFound as gone:
            raise self.explain_loss(gone.message) from gone
        marks = split_marks(self.position.fingerprint) if self.position else ("", "")
        for mark, version in zip(marks, (before, after), strict=True):
            if mark and version and Mark.parse(mark).commit != version.commit:
                raise self.explain_loss(
                    f"version {version.number} of its serving table is another than was sent"
                )
        places = self.list_places(after)
        if places is None or before is None:
            return Ends(before, after, places or (), comparable=places is not None)
        same = before.view == after.view or self.list_places(before) == places
        stay = {*before.schema.names} & {*after.schema.names} if self.sink.fixes_types else places
        return Ends(before, after, places, comparable=same and have_types_alike(before, after, stay))

    def explain_loss(self, why: str) -> SeamlineError:
        """Say that a target cannot be brought on by differences, and what can be done."""
        return OutOfStep(
            f"Sink {self.sink.id} cannot go on from what its target shows: {why}",
            hint=f"`seamline sinks resend {self.pipeline.name} {self.sink.id}` writes everything anew.",
        )

    def list_places(self, version: ServedVersion) -> tuple[str, ...] | None:
        """List what identifies the rows of a version; None if nobody knows any more."""
        view = (
            find_view(self.pipeline, self.layout, self.sink.view, version.view) if version.view else self.view
        )
        if view is None:
            return None
        grouping = (GROUPING,) if view.grouped else ()
        return (*grouping, *(key.name for key in view.keys), "window_start", "window_end")

    def begin_anew(self, why: str) -> None:
        """Clear the target, which holds what cannot be compared with what it shall hold."""
        log.info("%s is written anew: %s", self.sink.id, why)
        self.target.clear()
        self.position = None

    def mark(self, version: ServedVersion | None) -> str:
        """Say what a target shows that shows a version."""
        return "" if version is None else str(Mark(version.view, self.sink.form, version.commit))

    def send_step(self, step: SinkStep, ends: Ends) -> None:
        """Write the difference of two versions, in as many transactions as it takes."""
        comparison = Comparison(ends.before, ends.after, ends.places, self.sink.when, self.sink.wants_olds)
        written = 0
        for part, last in with_last(gather(iterate_changes(comparison, step.skip), count_bytes)):
            written += count_changes(part)
            position = step.reach(self.mark(ends.before), self.mark(ends.after), written, whole=last)
            if not self.write_part(part, position):
                return

    def send_range(self, due: RangeAgain, ends: Ends) -> None:
        """Write rows of a range again as the target's version has them; first delete what it has not."""
        assert self.position is not None
        shown = ShownRows(ends.after, self.sink.when, StartRange.of(due))
        if isinstance(self.target, RewritingTarget):
            self.send_in_place(self.target, shown, due)
            return
        if due.done == 0:
            delete_strays(self.target, shown, self.position)
        none = ends.after.schema.empty_table()
        again = (
            RowChanges(rows, none.select(list(ends.places)), rows if self.sink.wants_olds else None)
            for rows in shown.iterate_sendable(ends.places, due.done)
        )
        for part, last in with_last(gather(again, count_bytes)):
            position = self.position.send_again(count_changes(part), whole=last)
            if not self.write_part(part, position):
                return
        log.info("%s was given %s again", self.sink.id, due)

    def send_in_place(self, target: RewritingTarget, shown: ShownRows, due: RangeAgain) -> None:
        """Let a target write a range anew in place of what it has there."""
        assert self.position is not None
        for rows, position in target.write_again(shown, self.position):
            if not self.note(position, rows):
                return
        log.info("%s was given %s again", self.sink.id, due)

    def write_part(self, part: list[RowChanges], position: SinkPosition) -> bool:
        """Write changes and the position to which they lead in one transaction; false if it is time to stop."""
        self.target.write((ChangeBatch(*each) for each in part), position)
        return self.note(position, count_changes(part))

    def note(self, position: SinkPosition, changes: int) -> bool:
        """Note a position that is written, after so many changes; false if it is time to stop."""
        self.sent += changes
        self.position = position
        hit_failpoint("sink_sent")
        self.told.replace(self.make_copy(position))
        return not self.stopping()

    def make_copy(self, position: SinkPosition) -> SinkCopy:
        """Return what the warehouse is told of a position."""
        return SinkCopy(self.sink.view, self.sink.place, format_utc_instant(datetime.now(UTC)), position)


def find_view(pipeline: CompiledPipeline, layout: Layout, name: str, fingerprint: str) -> CompiledView | None:
    """Find a version of a view, in the definition or as it was stored; None if nobody knows it any more."""
    manifest = ManifestTable.ensure(layout).read()
    try:
        return resolve_view_version(pipeline, manifest, f"{name}/{fingerprint}")[1]
    except SeamlineError:
        return None


def have_types_alike(before: ServedVersion, after: ServedVersion, places: Iterable[str]) -> bool:
    """Return whether columns have the same types in both versions: texts cannot be compared with numbers."""
    return all(before.schema.field(name).type == after.schema.field(name).type for name in places)


def count_changes(part: Iterable[RowChanges]) -> int:
    """Count changes."""
    return sum(each.upserts.num_rows + each.deletions.num_rows for each in part)


def count_bytes(changes: RowChanges) -> int:
    """Count the bytes of changes in memory."""
    olds = changes.olds.nbytes if changes.olds else 0
    return int(changes.upserts.nbytes + changes.deletions.nbytes + olds)


def gather(found: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Gather batches into what one transaction takes; one without any where there are none."""
    some: list[T] = []
    given, held = False, 0
    for each in found:
        some.append(each)
        held += size(each)
        if len(some) == MOST_BATCHES or held >= MOST_BYTES:
            yield some
            some, given, held = [], True, 0
    if some or not given:
        yield some
