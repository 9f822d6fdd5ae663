"""Runs of the kernel over one micro-batch after another: in Spark's tasks, each under a number of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from seamline.kernel.epoch_kernel import KernelConfig, run
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.tables.lookup_tables import Lookups
from seamline.model.protocol.offsets import Vector
from seamline.model.protocol.seam import NOTHING
from seamline.spark.session.arrow_batches import MEASURED, batch_size
from seamline.spark.session.attempt_notes import DRY, JUDGED, KEPT, Attempted, Note
from seamline.spark.stream.epoch_sizing import EpochSize
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.progress import Progress
from seamline.spark.stream.read_topics import Topics
from seamline.spark.stream.register import Register
from seamline.spark.tasks.kernel_attempts import (
    Attempt,
    KernelFailed,
    make_unread_record,
)
from seamline.spark.tasks.task import REPORT, collect_reports, kernel_task, merge_task_reports

log = logging.getLogger("seamline.stream")


class KernelRuns:
    """Runs the kernel for one driver; ``attempted`` notes what is being done, in case the process dies of it."""

    progress: Progress
    """Where the stream stands; whoever commits moves it on."""
    passing: Note | None = None
    """A record of a hole that is passed over without being read."""

    def __init__(self, writer: Writer, topics: Topics, lookups: Lookups, attempted: Attempted) -> None:
        self.writer, self.topics, self.lookups = writer, topics, lookups
        self.pipeline = writer.pipeline
        self.register = Register(self.pipeline, writer.layout) if self.pipeline.surveyed else None
        self.size, self.attempted = EpochSize(self.pipeline.definition.stream), attempted
        self.record_bytes, self.batch_size = 0, MEASURED

    @property
    def unreadable_note(self) -> Note | None:
        """Return the note of a record of the live stream that cannot even be kept; None if it is not one."""
        return self.attempted.note if self.attempted.kept and self.size.unread else None

    def size_batches(self, frame: DataFrame) -> None:
        """Set the size of the batches in which Spark passes the micro-batch on; a query keeps its first setting."""
        if self.batch_size != (wanted := batch_size(self.record_bytes)):
            wanted.apply(frame.sparkSession)
            self.batch_size = wanted

    def run_attempt(
        self, frame: DataFrame, held: Vector, noted: Attempted, *, condemned: str, proved: bool
    ) -> Attempt:
        """Run the kernel under a number of its own; the topics are the same before and after (rule 13)."""
        self.topics.assert_same()
        versions = self.lookups.current_versions()
        if condemned and not proved:
            noted.enter_stage(DRY)
            if self.passes_dry_run(frame, held, versions):
                log.warning("The failure was not caused by a record: %s", condemned)
                condemned = ""
        noted.enter_stage(KEPT if condemned else JUDGED)
        number, views = self.writer.take_number(), self.writer.current
        self.writer.end_phase("planned")
        result = self.run_kernel(frame, number, views, held, versions, condemned)
        self.writer.end_phase("files")
        self.topics.assert_same()
        return Attempt(number, views, versions, result)

    def passes_dry_run(self, frame: DataFrame, held: Vector, versions: Mapping[str, str]) -> bool:
        """Return whether the kernel validates a record it failed with when it need not write: the disk is full."""
        try:
            self.run_kernel(frame, NOTHING, self.writer.current, held, versions, "", dry=True)
        except KernelFailed:
            return False
        finally:
            if self.register:
                self.register.forget()
        return True

    def run_kernel(
        self,
        frame: DataFrame,
        number: int,
        views: frozenset[str],
        held: Vector,
        versions: Mapping[str, str],
        condemned: str,
        *,
        dry: bool = False,
    ) -> KernelResult:
        """Run the kernel once over the micro-batch, ``dry`` without files; KernelFailed with what it raised."""
        config = KernelConfig(
            pipeline=self.pipeline,
            topic_ids=self.topics.ids,
            token=self.writer.token,
            epoch=number,
            committed=held,
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            condemned=condemned,
            watermark=self.progress.mark,
            at=datetime.now(UTC),
            lookups=self.lookups.version_paths(versions),
            dry=dry,
        )
        try:
            if condemned and (note := self.passing or self.unreadable_note):
                return run([make_unread_record(note, self.topics.ids)], config)
            if self.register and not condemned:
                config = self.register.survey(frame, config)
                self.writer.end_phase("surveyed")
            return merge_task_reports(collect_reports(frame.mapInArrow(kernel_task(config), REPORT)))
        except Exception as error:
            raise KernelFailed(error) from error
