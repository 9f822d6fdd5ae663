"""Adds to one topic what the log has of new dead letters, a way of some epochs at a time (rule 33)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol

import pyarrow as pa

from seamline.kafka.row_topic import Letter
from seamline.lake.log.epochs_from import list_epochs_from, read_newest_epoch
from seamline.lake.read.sinks.logged_records import iterate_letters
from seamline.lake.storage import durability
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_positions import SinkCopy
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.errors import OutOfStep, SeamlineError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.sinks.dead_letters import MOST_EPOCHS, choose_way, list_letters, name_commit
from seamline.model.protocol.sinks.marks import Mark, split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.steps import NOTHING, SinkStep, plan_step
from seamline.model.time.intervals import format_utc_instant
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.lasts import with_last
from seamline.sinks.letters.letter_records import make_letters
from seamline.sinks.sending import gather
from seamline.sinks.told_copy import ToldCopy

log = logging.getLogger("seamline.sinks")
TOLD_EVERY = 5.0
"""Seconds after which a position is written although there was nothing to send: people see how far a sink is."""


class LetterTaker(Protocol):
    """A target that records are added to, each once, with the position in the same transaction (``Target``)."""

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers; return how far it is, None for nothing."""

    def add(self, letters: Iterable[Letter], position: SinkPosition) -> None:
        """Add records, and write the position, in one transaction."""

    def close(self) -> None:
        """Let go of the connection; never raises."""


class LetterSending:
    """One sink of dead letters that has taken over its target."""

    wanted = ""
    """No version of a view has to be opened."""

    def __init__(
        self,
        pipeline: str,
        layout: Layout,
        sink: DeadLetterSink,
        target: LetterTaker,
        stopping: Callable[[], bool],
    ) -> None:
        self.pipeline, self.layout, self.sink = pipeline, layout, sink
        self.target, self.stopping = target, stopping
        self.sent, self.told_at = 0, float("-inf")
        self.position = target.take_over()
        self.told = ToldCopy(layout, sink.id)
        hit_failpoint("sink_taken")
        self.seen = self.shown
        """The epoch up to which it is known that there is nothing more to send than the position says."""
        for mark in filter(None, split_marks(self.position.fingerprint) if self.position else ()):
            if (form := Mark.parse(mark).form) != sink.form:
                raise self.explain_loss(f"it has records of {form!r}")

    @property
    def shown(self) -> int:
        """The epoch up to which the topic has all, NOTHING for none."""
        return NOTHING if self.position is None else self.position.version

    def send_next(self) -> bool:
        """Go one way, or a part of it where it is to be stopped; false if there is nothing new."""
        newest = read_newest_epoch(self.layout)
        if newest < self.shown:
            raise self.explain_loss(f"it has those of epoch {self.shown}, and the log ends at {newest}")
        step = plan_step(self.position, newest) if newest > NOTHING else None
        underway = self.position is not None and self.position.toward is not None
        if step is None or (not underway and newest == self.seen and not self.is_to_be_told()):
            return False
        before, way = self.read_way(step, whole=underway)
        if not way:
            return False
        return self.send_way(SinkStep(step.start, way[-1].number, step.skip), before, way, newest)

    def is_to_be_told(self) -> bool:
        """Return whether the position is behind what is known to have nothing, and that for long."""
        return self.seen > self.shown and time.monotonic() - self.told_at >= TOLD_EVERY

    def read_way(self, step: SinkStep, *, whole: bool) -> tuple[Epoch | None, list[Epoch]]:
        """Read the epoch before a way and those of the way, up to its end if it was begun.

        OutOfStep where the log has other epochs than those that were sent.
        """
        most = MOST_EPOCHS + 1
        found = list_epochs_from(self.layout, max(step.start, 0), most)
        before = found.pop(0) if step.start != NOTHING and found else None
        own = choose_way(self.sink.of, found)
        if whole:
            own = [each for each in found if each.number <= step.end]
        marks = split_marks(self.position.fingerprint) if self.position else ("", "")
        self.require_sent(marks[0], step.start, before)
        self.require_sent(marks[1], step.end, own[-1] if own else None)
        return before, own

    def require_sent(self, mark: str, number: int, epoch: Epoch | None) -> None:
        """Raise OutOfStep if an epoch of the log is not the one that a mark says, where there is a mark."""
        known = Mark.parse(mark).commit if mark else ""
        if known and (epoch is None or epoch.number != number or name_commit(epoch) != known):
            raise self.explain_loss(f"epoch {number} of the log is another than was sent")

    def explain_loss(self, why: str) -> SeamlineError:
        """Say that a topic cannot be added to, and what can be done."""
        return OutOfStep(
            f"Sink {self.sink.id} cannot go on with what its topic has: {why}.",
            hint=f"`seamline sinks resend {self.pipeline} {self.sink.id}` deletes its records, and writes all anew.",
        )

    def mark(self, epoch: Epoch | None) -> str:
        """Say up to which epoch a topic has what is sent."""
        return "" if epoch is None else str(Mark("", self.sink.form, name_commit(epoch)))

    def send_way(self, step: SinkStep, before: Epoch | None, way: list[Epoch], newest: int) -> bool:
        """Add the records of a way, in as many transactions as it takes; false where there is nothing to say yet."""
        marks = self.mark(before), self.mark(way[-1])
        epochs = list_letters(self.sink.of, before, way)
        found = iterate_letters(self.layout, self.sink.of, epochs, step.skip)
        parts = with_last(gather(found, lambda rows: int(rows.nbytes)))
        first = next(parts)
        self.seen = max(self.seen, step.end) if first[1] else self.seen
        nothing = self.position is not None and not step.skip and not any(each.num_rows for each in first[0])
        if nothing and step.end == newest and not self.is_to_be_told():
            return False
        # What a topic has must not be lost with the power: it would be read again as other epochs.
        durability.sync_disk(self.layout.table("master"))
        written = 0
        for part, last in chain([first], parts):
            count = sum(each.num_rows for each in part)
            written += count
            self.add(part, step.reach(*marks, written, whole=last), count)
            if self.stopping():
                break
        return True

    def add(self, part: list[pa.Table], position: SinkPosition, count: int) -> None:
        """Add some records, and tell the warehouse so."""
        letters = (letter for rows in part for letter in make_letters(rows, self.pipeline, self.sink.of))
        self.target.add(letters, position)
        self.sent, self.position, self.told_at = self.sent + count, position, time.monotonic()
        hit_failpoint("sink_sent")
        now = format_utc_instant(datetime.now(UTC))
        self.told.replace(SinkCopy(f"{self.sink.of} of the log", self.sink.place, now, position))
