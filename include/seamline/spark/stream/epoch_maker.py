"""Making epochs: read and validated, empty ones, and those that had to be tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.control_table import Drained
from seamline.lake.tables.log_tails import find_log_tails
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_end_offsets
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector, ranges_between
from seamline.model.time.intervals import parse_duration
from seamline.model.time.reached_intervals import find_closing_mark
from seamline.plan.stream.epoch_numbers import EdgePolicy
from seamline.plan.stream.lane_policy import build_watermark_policy
from seamline.plan.stream.refusal_news import Refusals
from seamline.spark.session.arrow_batches import MEASURED
from seamline.spark.session.attempt_notes import JUDGED, Attempted, Note
from seamline.spark.stream.catch_up import catch_up
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.stream.kernel_runs import KernelRuns
from seamline.spark.stream.progress import Progress, is_stream_idle
from seamline.spark.stream.pulse import Pulse
from seamline.spark.stream.read_topics import Topics
from seamline.spark.tasks.kernel_attempts import (
    Attempt,
    KernelFailed,
    coalesce_small_epoch,
)
from seamline.spark.tasks.rule_topics import RuleTopics

log = logging.getLogger("seamline.stream")


class Epochs(KernelRuns):
    """Makes one epoch after another; the caller sees to it that only one is made at a time."""

    def __init__(
        self, writer: Writer, topics: Topics, lookups: RuleTopics, ledger: Sequence[Epoch], heartbeat: Path
    ) -> None:
        super().__init__(writer, topics, lookups, Attempted(heartbeat.with_name("attempt.json")))
        stream = self.pipeline.definition.stream
        self.watermark = build_watermark_policy(self.pipeline.definition, topics.ids)
        self.policy = EdgePolicy(stream.edge_epochs, parse_duration(stream.edge_every))
        self.progress = self.resume_progress(ledger)
        if self.size.restore(self.attempted.read(), self.progress.vector):
            log.warning("The previous driver died of an epoch; reading %s records at a time", self.size.limit)
        self.refusals = Refusals(self.pipeline.name)
        self.retries = 0
        self.unstated: set[str] = set()
        self.pulse = Pulse(heartbeat)

    @property
    def is_outdated(self) -> bool:
        """Return whether the query must be restarted: for another lane, or for another size."""
        return self.size.is_outdated(self.progress.vector)

    def process_batch(
        self, frame: DataFrame, ends: Vector, *, stopping: bool, amending: Amending | None = None
    ) -> None:
        """Read, validate and commit one epoch up to the planned ``ends`` (rules 1 and 3).

        ``amending`` says how, where the frame has no records of Kafka's.
        """
        self.amending = amending
        try:
            self.make_epoch(frame, ends, stopping=stopping)
        finally:
            self.amending = None

    def make_epoch(self, frame: DataFrame, ends: Vector, *, stopping: bool) -> None:
        """Make an epoch of what is ``amending``, or of a micro-batch."""
        began = self.writer.timing.begin()
        before = self.add_lanes(ends)
        ranges = ranges_between(before.vector, ends)
        if not ranges:
            return
        start = dict(self.progress.vector)
        self.attempted.begin(Note(tuple(ranges), JUDGED, self.size.to_json()))
        try:
            self.size_batches(frame)
            # Spark reads a record of every lane: another one may have come beside the one that is condemned.
            condemned = self.size.condemned if sum(map(len, ranges)) == 1 else ""
            frame = coalesce_small_epoch(frame, ranges)
            held = self.progress.vector
            attempt = self.run_attempt(
                frame, held, self.attempted, condemned=condemned, proved=self.size.proved, ranges=ranges
            )
        except KernelFailed as error:
            self.raise_failure(error, frame, start, ends, ranges)
        self.attempted.finish(start, self.size.to_json())
        now = datetime.now(UTC)
        after = before.advance(ranges, attempt.result.max_event_time, now)
        due = stopping or before.is_edge_due(self.policy, attempt.number, now)
        epoch = replace(self.draft_epoch(attempt.number, after, now), edge=due, **attempt.facts(ranges))
        self.commit_attempt(after, epoch, attempt)
        self.size.record_commit(sum(map(len, ranges)), time.monotonic() - began, len(epoch.accepted))
        self.save_sizing()
        self.retries, self.excused, self.record_bytes = 0, 0, attempt.result.record_bytes
        self.topics.commit_group_offsets(f"seamline.{self.pipeline.name}", after.vector)
        self.write_heartbeat()

    def save_sizing(self) -> None:
        """Save what halving has learned, for the next driver, until the trouble is behind us."""
        if self.attempted.note:
            self.attempted.finish(self.progress.vector, self.size.to_json())

    def amend(
        self,
        frame: DataFrame,
        part: OffsetRange,
        noted: Attempted,
        amending: Amending,
        *,
        condemned: str = "",
        proved: bool = False,
        passing: Note | None = None,
    ) -> Epoch:
        """Read, validate and commit a part of a hole, or of an import; no lane's end moves.

        What is condemned is tried once more unless it is ``proved``, and not even read where it is ``passing``.
        ``noted`` says what is done with it, and from the kernel's end on that nothing is.
        """
        self.writer.timing.begin()
        self.passing, self.amending = passing, amending
        try:
            held = {part.lane: part.start}
            attempt = self.run_attempt(frame, held, noted, condemned=condemned, proved=proved)
            noted.enter_stage("")
        except KernelFailed as error:
            raise error.cause from None
        finally:
            self.passing = self.amending = None
        now = datetime.now(UTC)
        after = self.progress.advance_by_holes(attempt.result.max_event_time)
        due = self.progress.is_edge_due(self.policy, attempt.number, now)
        blank = self.draft_epoch(attempt.number, after, now)
        epoch = replace(blank, kind=amending.kind, edge=due, **attempt.facts([part]))
        self.commit_attempt(after, epoch, attempt)
        self.write_heartbeat()
        return epoch

    def commit_attempt(self, after: Progress, epoch: Epoch, attempt: Attempt) -> None:
        """Commit an epoch, and remember it."""
        self.fold_attempt(epoch, attempt)
        self.progress = self.commit_epoch(after, epoch, attempt.result, attempt.views)
        self.lookups.hold(attempt.versions)
        self.writer.rules = self.lookups.counts
        if self.surveys:
            self.surveys.commit(epoch.number)
        log_warnings(self.refusals.add(epoch.number, attempt.result.refused, epoch.committed_at))

    def commit_epoch(
        self, after: Progress, epoch: Epoch, result: KernelResult, views: Collection[str]
    ) -> Progress:
        """Commit an epoch; it states the frontiers of all views."""
        whole = self.writer.commit(epoch, result, views)
        self.unstated.clear()
        self.follow(whole)
        return after.commit(whole)

    def add_lanes(self, ends: Vector) -> Progress:
        """Add new lanes to the progress."""
        if all(lane in self.progress.vector for lane in ends):
            return self.progress
        return self.progress.add_lanes(
            self.topics.fetch_all_beginnings(self.progress.vector), datetime.now(UTC)
        )

    def draft_epoch(self, number: int, progress: Progress, now: datetime) -> Epoch:
        """Draft an epoch that read nothing; the broker is asked for its ends only when a lane is silent."""
        ends = (
            self.topics.fetch_ends(progress.vector) if progress.has_silent_lane(self.watermark, now) else {}
        )
        return Epoch(
            number=number,
            token=self.writer.token,
            committed_at=now,
            record_version=self.pipeline.record_version,
            watermark=progress.watermark(self.watermark, ends, now),
            clock=self.pipeline.clock,
        )

    def resume_progress(self, ledger: Sequence[Epoch]) -> Progress:
        """Resume the progress where the master ends, over every lane that ledger and topics have."""
        known = list_end_offsets(ledger)
        starts = self.topics.find_starts(self.writer.master, known)
        master, quarantine = (Files.of(each) for each in (self.writer.master.table, self.writer.quarantine))
        self.topics.require_kept(
            find_log_tails(master, quarantine, {lane: at for lane, at in starts.items() if lane in known})
        )
        self.lookups.resume(ledger)
        self.writer.rules = self.lookups.counts
        return Progress.resume(ledger, starts, datetime.now(UTC), self.pipeline.timed)

    def reload_log(self) -> list[Epoch]:
        """Read again where the master ends, and return the ledger: a failed attempt may be committed after all."""
        ledger = self.writer.repair_ledger()
        self.derived.forget()
        if self.surveys:
            self.surveys.settle(self.writer.master.epoch)
        self.topics.assert_ids()
        self.progress = self.resume_progress(ledger)
        return ledger

    def restart(self) -> None:
        """Read again where the master ends, and in which size to go on from there."""
        self.reload_log()
        self.size.restart(self.progress.vector)
        self.save_sizing()
        self.batch_size = MEASURED

    def declare_idle_edge(self, drained: Drained | None) -> None:
        """Between epochs: declare an edge when the stream is idle, or when the watermark goes on without rows.

        It does when lanes fall idle, and when someone has declared that the topic ends where we are.
        """
        now = datetime.now(UTC)
        self.pulse.renew(self.progress, self.writer, self.topics)
        log_warnings(self.refusals.take_due(now))
        last = self.progress.epoch
        if drained and last and self.progress.is_read_to(drained.ends, self.watermark):
            closing, mark = self.find_closing_watermark(), self.progress.mark
            if closing and (mark is None or mark < closing):
                self.commit_empty(watermark=closing, reason=f"drained, {drained.actor}: {drained.reason}")
                return
        if last is None or not is_stream_idle(self.progress, now):
            return
        if not last.edge or (
            self.progress.has_silent_lane(self.watermark, now)
            and self.draft_epoch(-1, self.progress, now).watermark != self.progress.mark
        ):
            self.commit_empty()

    def find_closing_watermark(self) -> datetime | None:
        """Return the watermark that closes the last interval with rows; the log knows it where no event time is."""
        end = self.progress.last_interval_end(self.pipeline.grid)
        if end is None and (last := self.writer.find_last_filled(self.pipeline)):
            end = self.pipeline.grid.named(last).end
        return end and find_closing_mark(end, self.pipeline.views)

    def commit_empty(self, **stated: Any) -> None:
        """Commit an epoch that reads nothing, is an edge, and states the given facts."""
        self.writer.timing.begin()
        blank = self.draft_epoch(self.writer.take_number(), self.progress, datetime.now(UTC))
        epoch, result = replace(blank, edge=True, **stated), KernelResult()
        self.derived.fold(epoch, result, self.writer.current, self.progress.mark)
        self.progress = self.commit_epoch(self.progress, epoch, result, self.writer.current)
        self.write_heartbeat()

    def pass_over(self, lane: Lane, end: int) -> None:
        """Commit an epoch that moves a table's lane over versions that bring no rows."""
        ranges = ranges_between(self.progress.vector, {lane: end})
        self.progress = self.progress.advance(ranges, {}, datetime.now(UTC))
        self.commit_empty(ranges=ranges)

    def catch_up(self, spark: SparkSession, views: Collection[str] | None = None) -> bool:
        """Bring views that are behind a step nearer to E, all or those named; return whether any moved."""
        before = self.writer.behind
        moved = catch_up(spark, self.writer, views)
        self.unstated |= before.keys() - self.writer.behind.keys()
        self.state_news()
        return moved

    def state_news(self, restated: int = 0) -> None:
        """State the frontiers of views that have come to E, unless a live epoch has done so, and so many decisions."""
        if self.derived.any and restated > self.writer.restated:
            self.commit_empty(restated=restated)
        if self.unstated:
            self.commit_empty()

    def close(self, state: str = "stopped") -> None:
        """Declare the last edge."""
        log_warnings(self.refusals.take_due(datetime.now(UTC), ending=True))
        last = self.progress.epoch
        if last is not None and not last.edge:
            self.commit_empty()
        self.writer.rows.whole()
        self.write_heartbeat(state)

    def write_heartbeat(self, state: str = "running") -> None:
        """Write the heartbeat file; before the first epoch it says that the driver is up and reads."""
        self.pulse.write(self.progress, self.writer, self.topics, state)


def log_warnings(lines: Iterable[str]) -> None:
    """Log warnings."""
    for line in lines:
        log.warning("%s", line)
