"""Runs of the kernel over one micro-batch after another: in Spark's tasks, each under a number of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NoReturn

from pyspark.sql import DataFrame

from seamline.asking.askers import Askers
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.kernel.raw import add_coordinates
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.errors import RegistryRefused, RegistryUnavailable, SeamlineError
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import OffsetRange, Vector
from seamline.model.protocol.seam import NOTHING
from seamline.model.schemas.writer_schema import find_wanted_schemas
from seamline.plan.stream.epoch_parts import StatesSeen
from seamline.runtime.storage_failures import store_failed
from seamline.spark.session.arrow_batches import MEASURED, batch_size
from seamline.spark.session.attempt_notes import DRY, JUDGED, KEPT, Attempted, Note
from seamline.spark.stream.derived.derived_rows import DerivedRows
from seamline.spark.stream.epoch_sizing import EpochSize
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.stream.progress import Progress
from seamline.spark.stream.read_topics import Topics
from seamline.spark.stream.registries import Registries
from seamline.spark.stream.surveying import Surveys
from seamline.spark.tasks.history_frames import RAW_DDL
from seamline.spark.tasks.kernel_attempts import (
    Attempt,
    KernelFailed,
    find_worker_message,
    is_frame_alive,
    make_unread_record,
)
from seamline.spark.tasks.rule_topics import RuleTopics
from seamline.spark.tasks.spread import count_task_slots
from seamline.spark.tasks.state_parts import count_states, run_epoch_in_parts
from seamline.spark.tasks.task import REPORT, collect_reports, kernel_task, merge_task_reports

log = logging.getLogger("seamline.stream")
EXCUSED = 10
"""Failures in a row, each after the tables were read again, that tasks may lay to a store that is away."""


class KernelRuns:
    """Runs the kernel for one driver; ``attempted`` notes what is being done, in case the process dies of it."""

    progress: Progress
    """Where the stream stands; whoever commits moves it on."""
    states_seen = StatesSeen()
    """How many partial states earlier epochs had."""
    kept: KeptSchemas | None = None
    """The writers' schemas that tasks read by just now; None without a registry."""
    passing: Note | None = None
    """A record of a hole that is passed over without being read."""
    amending: Amending | None = None
    """What is read just now; None for a micro-batch of Kafka's records."""

    def __init__(self, writer: Writer, topics: Topics, lookups: RuleTopics, attempted: Attempted) -> None:
        self.writer, self.topics, self.lookups = writer, topics, lookups
        self.pipeline = writer.pipeline
        folder = attempted.file.with_name("ids")
        self.surveys = Surveys(self.pipeline, writer.layout, folder) if self.pipeline.surveyed else None
        self.derived = DerivedRows(writer, attempted.file.with_name("joined"))
        self.size, self.attempted = EpochSize(self.pipeline.definition.stream), attempted
        self.record_bytes, self.batch_size, self.excused = 0, MEASURED, 0
        self.askers = Askers(self.pipeline, writer.layout)
        self.registries = Registries(self.pipeline, writer.layout)
        self.registries.begin(lookups.spark)
        writer.ended = self.askers.ended

    def follow(self, epoch: Epoch) -> None:
        """Let what is kept of derived rows, and those who ask about rows, know of an epoch that is committed."""
        self.derived.commit(epoch)
        self.askers.tell(epoch=epoch.number)

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """Return the ids of what is read just now, by the topics' names."""
        return self.amending.topic_ids if self.amending else self.topics.ids

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
        self,
        frame: DataFrame,
        held: Vector,
        noted: Attempted,
        *,
        condemned: str,
        proved: bool,
        ranges: Sequence[OffsetRange] = (),
    ) -> Attempt:
        """Run the kernel, again where records name schemas that are not kept yet, once they are.

        KernelFailed, also where a registry that has to be asked is away.
        """
        self.registries.forget_unknown()
        while True:
            try:
                self.kept = self.registries.current_schemas()
                return self.try_attempt(frame, held, noted, condemned=condemned, proved=proved, ranges=ranges)
            except (RegistryUnavailable, RegistryRefused) as error:
                raise KernelFailed(error) from error
            except KernelFailed as error:
                if not self.registries.want(find_wanted_schemas(str(error.cause))):
                    raise
                if self.surveys:
                    self.surveys.settle(NOTHING)

    def try_attempt(
        self,
        frame: DataFrame,
        held: Vector,
        noted: Attempted,
        *,
        condemned: str,
        proved: bool,
        ranges: Sequence[OffsetRange],
    ) -> Attempt:
        """Run the kernel under a number of its own; the topics are the same before and after (rule 13).

        Rules in ``ranges`` are in force for all that is read with them.
        """
        self.topics.assert_same()
        versions = self.lookups.current_versions()
        if condemned and not proved:
            noted.enter_stage(DRY)
            if self.passes_dry_run(frame, held, versions):
                log.warning("The failure was not caused by a record: %s", condemned)
                condemned = ""
        noted.enter_stage(KEPT if condemned else JUDGED)
        if not condemned:
            versions = {**versions, **self.fold_rules(frame, ranges)}
        number, views = self.writer.take_number(), self.writer.current
        self.writer.end_phase("planned")
        records = sum(map(len, noted.note.ranges)) if noted.note else 0
        many = self.states_seen.are_many(records) and not self.derived.any
        parts = self.count_parts(frame) if many else 0
        result = self.run_kernel(frame, number, views, held, versions, condemned, parts=parts)
        self.states_seen = self.states_seen.take(records, count_states(result))
        self.derived.join(number, result, views, self.progress.mark)
        self.writer.end_phase("files")
        self.topics.assert_same()
        return Attempt(number, views, versions, result)

    def raise_failure(
        self,
        error: KernelFailed,
        frame: DataFrame,
        start: Vector,
        ends: Vector,
        ranges: Sequence[OffsetRange],
    ) -> NoReturn:
        """Raise what an epoch from ``start`` to ``ends`` failed with, and note what it says of its records."""
        self.record_bytes = 0
        if not is_frame_alive(frame):
            # The JVM is dead, and this process ends: the note stands for the next one.
            raise error.cause from None
        if isinstance(error.cause, SeamlineError):
            # What this process finds wrong with its own work is no failure of a record.
            self.attempted.finish(start, self.size.to_json())
            raise error.cause from None
        if self.amending and (fault := self.amending.find_fault(error.cause)):
            self.attempted.finish(start, self.size.to_json())
            raise fault from error.cause
        # Tasks read Kafka and write files: a broker or a store that is away is no failure of a record.
        self.topics.assert_same()
        # What a record says may look like it; the trial without files tells, once that has lasted.
        if (failed := store_failed(error.cause)) and self.excused < EXCUSED:
            self.excused += 1
            self.attempted.finish(start, self.size.to_json())
            raise failed from error.cause
        self.size.record_failure(find_worker_message(error.cause), ends, ranges, kept=self.attempted.kept)
        self.attempted.finish(start, self.size.to_json())
        raise error.cause from None

    def fold_attempt(self, epoch: Epoch, attempt: Attempt) -> None:
        """Fold what an epoch has read; a driver that dies of it is said to have died of its records (rule 17)."""
        live = epoch.kind is EpochKind.READ and self.derived.folded.processes
        # What is read again of earlier epochs is not the fault of this one's records.
        self.derived.folded.open_all(attempt.views, self.progress.mark)
        if live:
            self.attempted.begin(Note(tuple(epoch.ranges), JUDGED, self.size.to_json()))
        try:
            self.derived.fold(epoch, attempt.result, attempt.views, self.progress.mark)
        finally:
            if live:
                self.attempted.finish(self.progress.vector, self.size.to_json())

    def fold_rules(self, frame: DataFrame, ranges: Sequence[OffsetRange]) -> Mapping[str, str]:
        """Return the versions of the tables of rules that the records of ``ranges`` change; KernelFailed."""
        ids = {self.topics.ids[name] for name in self.lookups.topics}
        if not (mine := [part for part in ranges if part.lane.topic_id in ids]):
            return {}
        try:
            raw = self.topics.read_ranges(frame.sparkSession, mine)
            version = self.pipeline.record_version
            return self.lookups.fold(add_coordinates(raw, self.topics.ids, NOTHING, version), self.kept)
        except Exception as error:
            raise KernelFailed(error) from error

    def count_parts(self, frame: DataFrame) -> int:
        """Return into how many parts an epoch goes that goes into parts."""
        return self.pipeline.definition.stream.parts or count_task_slots(frame.sparkSession)

    def passes_dry_run(self, frame: DataFrame, held: Vector, versions: Mapping[str, str]) -> bool:
        """Return whether the kernel validates a record it failed with when it need not write: the disk is full."""
        try:
            self.run_kernel(frame, NOTHING, self.writer.current, held, versions, "", dry=True)
        except KernelFailed as error:
            said = find_wanted_schemas(str(error.cause))
            if isinstance(error.cause, SeamlineError) or self.registries.want(said):
                # What this process finds wrong with its own work, or a store that is away, says nothing of a record.
                raise
            return False
        finally:
            if self.surveys:
                self.surveys.settle(NOTHING)
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
        parts: int = 0,
        dry: bool = False,
    ) -> KernelResult:
        """Run the kernel once over the micro-batch, ``dry`` without files; KernelFailed with what it raised.

        In ``parts`` each of them merges states and writes slices; with 0 the states are the result's.
        """
        config = KernelConfig(
            pipeline=self.pipeline,
            topic_ids=self.topic_ids,
            token=self.writer.token,
            epoch=number,
            committed=held,
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            condemned=condemned,
            # Rows of files are no news of how late a topic's records are.
            watermark=None
            if self.amending and self.amending.kind is EpochKind.IMPORT
            else self.progress.mark,
            until=self.amending.until if self.amending else None,
            read=self.amending.read if self.amending else None,
            at=datetime.now(UTC),
            lookups=self.lookups.version_paths(versions),
            kept=self.kept,
            dry=dry,
            parts=parts,
            slices={view: slices.table.root for view, slices in self.writer.slices.items()} if parts else {},
        )
        try:
            if condemned and (note := self.passing or self.unreadable_note):
                return run([make_unread_record(note, self.topic_ids)], config)
            if self.surveys and not condemned:
                # The survey reads them too: a frame of raw records serves both.
                if config.read:
                    frame, config = frame.mapInArrow(config.read, RAW_DDL), replace(config, read=None)
                config = self.surveys.survey(frame, config)
                self.writer.end_phase("surveyed")
            if config.parts:
                return run_epoch_in_parts(frame, config)
            return merge_task_reports(collect_reports(frame.mapInArrow(kernel_task(config), REPORT)))
        except Exception as error:
            raise KernelFailed(error) from error
