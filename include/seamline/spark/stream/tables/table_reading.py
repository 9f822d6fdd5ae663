"""Reading what is new in Delta tables: each version an epoch, a large one several."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from seamline.lake.imports.history_records import UNREADABLE
from seamline.lake.imports.import_plans import ImportPlan
from seamline.lake.imports.table_versions import TableNews
from seamline.lake.store.locations import parse_location
from seamline.model.errors import OffsetGap, SeamlineError, SparkFailed
from seamline.model.protocol.clusters.gap_errors import build_gap_error
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import Gap
from seamline.model.protocol.imported.table_rows import TableRow, find_row
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import parse_duration
from seamline.plan.stream.import_plan import find_file_rows
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.tasks.history_frames import NUMBER, cut_into_runs, make_reader
from seamline.spark.tasks.kernel_attempts import find_worker_message
from seamline.spark.tasks.spread import count_task_slots

PASSED = 50
"""Versions that bring no rows, after which the log says that they are passed: their entries may be cleaned up."""
LEAST_PAUSE = 0.25
"""Seconds between two looks at a table that has nothing new, at least."""
BESIDE = 200_000
"""Rows of an epoch for which records of topics wait, at most."""


class TableReading:
    """Reads the tables of a pipeline, one epoch at a time."""

    def __init__(self, epochs: Epochs) -> None:
        self.epochs, self.topics = epochs, epochs.topics
        trigger = epochs.pipeline.definition.stream.trigger
        self.pause = max(parse_duration(trigger, zero=True).total_seconds(), LEAST_PAUSE)
        self.next_look = 0.0

    def work(self, spark: SparkSession, *, stopping: bool) -> None:
        """Read an epoch of each table at most; the caller sees to it that no other epoch is made meanwhile.

        OffsetGap where the next version cannot be read, TopicRecreated, StoreUnavailable, and what the kernel raises.
        """
        if not self.topics.tables.sources or time.monotonic() < self.next_look:
            return
        suspect, held = self.epochs.size.suspect, self.epochs.progress.vector
        busy = False
        for lane, versions in self.topics.tables.versions.items():
            if suspect in (None, lane):
                news = versions.look(held.get(lane))
                self.require_readable(lane, held.get(lane), news)
                if news.passed - find_row(held.get(lane, 0)).version >= PASSED:
                    self.epochs.pass_over(lane, TableRow(news.passed, 0, done=True).offset)
                if news.plan:
                    self.read_piece(spark, lane, news.plan, news.end, stopping=stopping)
                    busy = True
        if not busy:
            self.next_look = time.monotonic() + self.pause

    def require_readable(self, lane: Lane, position: int | None, news: TableNews) -> None:
        """Raise OffsetGap where the next version cannot be read."""
        if news.lost and position is not None:
            gap = Gap(lane, position, news.beginning)
            way_out = build_gap_error(self.epochs.pipeline.name, self.topics.ids, [gap]).hint
            raise OffsetGap(f"{news.lost} Not read: {gap}.", hint=way_out)

    def read_piece(
        self, spark: SparkSession, lane: Lane, plan: ImportPlan, whole: int, *, stopping: bool
    ) -> None:
        """Read the next rows of a version, which ends at ``whole``, as many as an epoch may have."""
        most = min(self.epochs.size.limit, BESIDE) if self.topics.names else self.epochs.size.limit
        first = max(self.epochs.progress.vector[lane], plan.files[0].start)
        part = OffsetRange(lane, first, min(first + most, plan.rows))
        if not are_files_there(plan, part):
            # Vacuumed since they were planned: the next look says what is lost.
            self.topics.tables.versions[lane].plan_version.cache_clear()
            return
        runs = cut_into_runs(plan, part, count_task_slots(spark))
        frame = spark.range(0, len(runs), 1, len(runs)).toDF(NUMBER)
        read = Amending(
            EpochKind.READ, self.topics.ids, read=make_reader(runs, plan), find_fault=find_file_fault
        )
        ends = {lane: whole if part.end == plan.rows else part.end}
        self.epochs.process_batch(frame, ends, stopping=stopping, amending=read)


def find_file_fault(error: Exception) -> SeamlineError | None:
    """Return what is wrong with a table's file that a task could not read; None for another failure."""
    said = find_worker_message(error)
    if UNREADABLE not in said:
        return None
    return SparkFailed(
        said[said.index(UNREADABLE) :].splitlines()[0],
        hint="it is tried again; if it lasts, check the table by its own engine.",
    )


def are_files_there(plan: ImportPlan, part: OffsetRange) -> bool:
    """Return whether the files of some rows are there; StoreUnavailable."""
    rows = find_file_rows(plan.files, part.start, part.end)
    return all(parse_location(each.file.path).exists() for each in rows)
