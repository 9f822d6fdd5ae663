"""Making epochs: read and judged, empty ones, and those that had to be tried again."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from seamline.lake.control import Drained
from seamline.lake.lookups import Lookups
from seamline.model.epoch import Epoch
from seamline.model.intervals import parse_duration, stamp
from seamline.model.offsets import Lane, OffsetRange, Vector, ranges_between
from seamline.plan.epochs import EdgePolicy
from seamline.plan.refusals import Refusals
from seamline.spark.catch_up import catch_up
from seamline.spark.heartbeat import Heartbeat, Trail, beat
from seamline.spark.kernel import KernelConfig, KernelResult
from seamline.spark.progress import Progress, rests
from seamline.spark.register import Register
from seamline.spark.serving import Refresher
from seamline.spark.task import REPORT, gathered, kernel_task
from seamline.spark.topics import Topics
from seamline.spark.writer import Writer

log = logging.getLogger("seamline.stream")
ATTEMPTS = 3


class Epochs:
    """Makes one epoch after another; the caller sees to it that only one is made at a time."""

    def __init__(
        self,
        writer: Writer,
        topics: Topics,
        refresher: Refresher,
        lookups: Lookups,
        ledger: Sequence[Epoch],
        heartbeat: Path,
    ) -> None:
        self.writer, self.topics, self.refresher, self.file = writer, topics, refresher, heartbeat
        self.lookups = lookups
        self.pipeline = writer.pipeline
        stream = self.pipeline.definition.stream
        self.watermark = self.pipeline.definition.source.watermark
        self.register = Register(self.pipeline, writer.layout) if self.pipeline.surveyed else None
        self.policy = EdgePolicy(stream.edge_epochs, parse_duration(stream.edge_every))
        self.progress = Progress.resumed(ledger, topics.starts(writer.master), datetime.now(UTC))
        self.limit = stream.max_offsets_per_epoch
        self.refusals = Refusals(self.pipeline.name)
        self.retries = self.failures = self.alone = 0
        self.condemned = ""
        self.trouble: Vector = {}
        self.suspects: list[Lane] = []
        self.turned = False
        self.seconds: dict[str, float] = {}
        self.marked = time.monotonic()
        self.trail = Trail()
        writer.phases = self.mark

    @property
    def halved(self) -> bool:
        """Tell whether epochs are smaller than declared, because larger ones failed."""
        return self.limit != self.pipeline.definition.stream.max_offsets_per_epoch

    @property
    def recovered(self) -> bool:
        """Tell whether the records that made larger epochs fail are behind us."""
        vector = self.progress.vector
        return self.halved and all(vector.get(lane, 0) >= end for lane, end in self.trouble.items())

    @property
    def outdated(self) -> bool:
        """Tell whether the query must be started anew: for another lane, or for epochs of full size."""
        return self.turned or self.recovered

    def read(self, frame: DataFrame, ends: Vector, *, stopping: bool) -> None:
        """Read, judge and commit one epoch up to the planned ``ends`` (rules 1 and 3)."""
        self.seconds, self.marked = {}, time.monotonic()
        before = self.meet(ends)
        ranges = ranges_between(before.vector, ends)
        if not ranges:
            return
        self.topics.assert_same()
        number, views = self.writer.take(), self.writer.current
        self.writer.done("planned")
        versions = self.lookups.current()
        result = self.computed(frame, number, views, ends, ranges, versions)
        self.writer.done("files")
        self.topics.assert_same()
        now = datetime.now(UTC)
        times = result.max_event_time
        after = before.read(ranges, times, now)
        epoch = replace(
            self.blank(number, after, now),
            edge=stopping or before.edge_due(self.policy, number, now),
            ranges=ranges,
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            late=dict(result.late),
            very_late=dict(result.very_late),
            max_event_time=times,
            lookups=versions,
        )
        self.progress = after.held(self.writer.commit(epoch, result, views))
        if self.register:
            self.register.hold()
        warn(self.refusals.take(number, result.refused, now))
        if self.condemned:
            self.trouble, self.suspects = {}, []
        elif self.suspects:
            self.suspects.pop(0)
            self.turned = True
        self.retries = self.failures = self.alone = 0
        self.condemned = ""
        self.refresher.touch(epoch.accepted)
        self.topics.tell_group(f"seamline.{self.pipeline.name}", after.vector)
        self.heartbeat()

    def meet(self, ends: Vector) -> Progress:
        """Give the progress with new lanes taken in."""
        if all(lane in self.progress.vector for lane in ends):
            return self.progress
        return self.progress.meet(self.topics.beginnings(), datetime.now(UTC))

    def blank(self, number: int, progress: Progress, now: datetime) -> Epoch:
        """Give an epoch that read nothing; the broker is asked for its ends only when a lane is silent."""
        ends = self.topics.ends() if progress.silent(self.watermark, now) else {}
        return Epoch(
            number=number,
            token=self.writer.token,
            committed_at=now,
            record_version=self.pipeline.record_version,
            watermark=progress.watermark(self.watermark, ends, now),
        )

    def computed(
        self,
        frame: DataFrame,
        number: int,
        views: frozenset[str],
        ends: Vector,
        ranges: Sequence[OffsetRange],
        versions: Mapping[str, str],
    ) -> KernelResult:
        """Run the kernel once over the micro-batch."""
        config = KernelConfig(
            pipeline=self.pipeline,
            topic_ids=self.topics.ids,
            token=self.writer.token,
            epoch=number,
            held=self.progress.vector,
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            condemned=self.condemned,
            watermark=self.progress.epoch.watermark if self.progress.epoch else None,
            at=datetime.now(UTC),
            lookups=self.lookups.paths(versions),
        )
        try:
            if self.register and not self.condemned:
                config = self.register.survey(frame, config)
                self.writer.done("surveyed")
            rows = frame.mapInArrow(kernel_task(config), REPORT).collect()
        except Exception as error:
            self.failed(error, ends, ranges)
            raise
        return gathered((row.kind, row.payload) for row in rows)

    def failed(self, error: Exception, ends: Vector, ranges: Sequence[OffsetRange]) -> None:
        """Count kernel failures at one start: halve the epoch, condemn a record that fails alone (rule 17).

        The first halving waits for the third failure; once there is known to be trouble, each failure halves
        again, until a record has failed three times alone. Spark gives every lane at least one record: at one
        for each, the lanes are read one by one.
        """
        records = sum(map(len, ranges))
        self.failures += 1
        self.alone = self.alone + 1 if records == 1 else 0
        self.trouble = {**ends, **self.trouble} if self.halved else dict(ends)
        if self.halved or self.failures >= ATTEMPTS:
            self.limit = max(records // 2, 1)
            if 1 < records <= len(ranges):
                self.suspects = [part.lane for part in ranges]
        if self.alone >= ATTEMPTS:
            self.condemned = said(error)

    def restart(self) -> None:
        """Read again where the master ends: an attempt that failed late may have been held after all."""
        self.topics.assert_same()
        ledger = self.writer.repaired()
        starts = self.topics.starts(self.writer.master)
        self.progress = Progress.resumed(ledger, starts, datetime.now(UTC))
        self.turned = False
        if self.register:
            self.register.forget()
        if self.recovered:
            self.limit = self.pipeline.definition.stream.max_offsets_per_epoch

    def rest(self, drained: Drained | None) -> None:
        """Between epochs: declare an edge when the stream is idle, or when the watermark goes on without rows.

        It does when lanes fall idle, and when somebody has declared that the topic ends where we are.
        """
        now = datetime.now(UTC)
        warn(self.refusals.due(now))
        last = self.progress.epoch
        if drained and last and drained.ends == self.progress.vector:
            closing = self.progress.closing(self.pipeline.grid)
            if closing and (last.watermark is None or last.watermark < closing):
                self.empty(watermark=closing, reason=f"drained, {drained.actor}: {drained.reason}")
                return
        if last is None or not rests(self.progress, now):
            return
        if not last.edge or (
            self.progress.silent(self.watermark, now)
            and self.blank(-1, self.progress, now).watermark != last.watermark
        ):
            self.empty()

    def empty(self, **stated: Any) -> None:
        """Hold an empty epoch that is an edge and states what is given."""
        self.seconds, self.marked = {}, time.monotonic()
        blank = self.blank(self.writer.take(), self.progress, datetime.now(UTC))
        epoch = replace(blank, edge=True, **stated)
        whole = self.writer.commit(epoch, KernelResult(), self.writer.current)
        self.progress = self.progress.held(whole)
        self.heartbeat()

    def catch_up(self, spark: SparkSession) -> None:
        """Bring views that are behind up to E, and state their new frontiers in an empty epoch."""
        if catch_up(spark, self.writer):
            self.empty()

    def close(self) -> None:
        """Declare the last edge."""
        warn(self.refusals.due(datetime.now(UTC), ending=True))
        last = self.progress.epoch
        if last is not None and not last.edge:
            self.empty()
        if last is not None:
            self.heartbeat("stopped")

    def heartbeat(self, state: str = "running") -> None:
        """Write the heartbeat file; before the first epoch it says that the driver is up and reads."""
        epoch = self.progress.epoch or Epoch(-1, self.writer.token, datetime.now(UTC), "")
        ends = self.topics.ends()
        at = {lane: (end, ends.get(lane, end)) for lane, end in self.progress.vector.items()}
        now = datetime.now(UTC)
        read, end = (sum(both[which] for both in at.values()) for which in (0, 1))
        reached, earlier = self.trail.add(now, read, end)
        beat(
            self.file,
            Heartbeat(
                pid=os.getpid(),
                token=self.writer.token,
                epoch=epoch.number,
                watermark=stamp(epoch.watermark) if epoch.watermark else "",
                rows=epoch.rows,
                refused=sum(epoch.refused.values()),
                lag={str(lane): end - read for lane, (read, end) in at.items()},
                seconds=self.seconds,
                behind={view: at for view, at in epoch.frontiers.items() if at != epoch.number},
                state=state,
                at=stamp(now),
                errors=dict(self.writer.errors),
                topics={id: name for name, id in self.topics.ids.items()},
                reached=reached,
                earlier=earlier,
            ),
        )

    def mark(self, phase: str) -> None:
        """Note how long a phase took, in seconds."""
        now = time.monotonic()
        self.seconds[phase] = round(now - self.marked, 4)
        self.marked = now


def warn(lines: Iterable[str]) -> None:
    """Log warnings."""
    for line in lines:
        log.warning("%s", line)


def said(error: Exception) -> str:
    """Give the last line of the worker's own words, which Spark puts before the JVM's stack."""
    words = str(error).split("\tat ")[0].strip().splitlines()
    return (words[-1] if words else type(error).__name__)[:500]
