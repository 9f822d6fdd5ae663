"""The real engine without Kafka: the shipped kernel in Spark tasks, the shipped writer, build, certificate and read."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.kernel.raw import add_coordinates
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.asked_approvals import note_asked
from seamline.lake.publish.lookup_restating import restate_lookup
from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read import merged_read
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING, Side
from seamline.model.time.intervals import EPOCH, Interval
from seamline.plan.stream.lane_policy import build_watermark_policy
from seamline.quality.certify import certify_run, require_passed
from seamline.quality.run_comparing import compare_run
from seamline.spark.build.build import build_intervals
from seamline.spark.build.reprocessing import reprocess_epochs
from seamline.spark.stream.catch_up import catch_up
from seamline.spark.stream.derived.derived_rows import DerivedRows
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.progress import Progress
from seamline.spark.stream.surveying import Surveys
from seamline.spark.tasks.rule_topics import RuleTopics
from seamline.spark.tasks.state_parts import run_epoch_in_parts
from seamline.spark.tasks.task import REPORT, collect_reports, kernel_task, merge_task_reports
from seamline.testing.engine import cuts_of


class Killed(Exception):
    """The process is gone."""


class Mortal(Writer):
    """A writer that ends after a step."""

    dies_after = ""

    def end_phase(self, phase: str) -> None:
        super().end_phase(phase)
        if phase == self.dies_after:
            raise Killed(phase)


class Tables:
    """Both layers as they are shipped, below ``folder``, in a Spark session with Delta."""

    def __init__(self, pipeline: CompiledPipeline, folder: Location, spark: SparkSession) -> None:
        self.pipeline, self.spark = pipeline, spark
        self.layout = Layout(folder, pipeline.name)
        self.token = 0
        self.scratch = Path(tempfile.mkdtemp(prefix="seamline-testing-"))
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)
        self.start()

    def restart(self) -> None:
        self.derived.forget()
        self.start()

    def start(self) -> None:
        """Take the tables over."""
        self.token += 1
        self.writer = Mortal(self.layout, self.pipeline, self.token)
        self.writer.repair_ledger()
        self.held = known_epochs(self.layout)
        before = in_force(self.held, self.pipeline.record_version)
        lookups = Lookups(self.pipeline.lookups, self.layout, before, every=0)
        self.lookups = RuleTopics(self.writer.pipeline, lookups, self.spark)
        self.lookups.resume(self.held)
        self.surveys = Surveys(self.writer.pipeline, self.layout, self.scratch / str(self.token))
        self.derived = DerivedRows(self.writer, self.scratch / "joined")

    def redefine(self, pipeline: CompiledPipeline) -> None:
        self.pipeline = pipeline
        self.restart()

    def commit(self, epoch: Epoch, raw: pa.Table, *, dies_after: str = "") -> Epoch | None:
        self.writer.dies_after = dies_after
        number, views = self.writer.take_number(), self.writer.current
        vector = {part.lane: part.start for part in epoch.ranges}
        found = {**vector, **self.positions}
        before = Progress.resume(self.held, found, epoch.committed_at, self.pipeline.timed)
        before = replace(before, last_seen=self.last_seen(before))
        versions = {**self.lookups.current_versions(), **self.lookups.fold(self.select_rules(raw))}
        try:
            self.writer.end_phase("planned")
            result = self.kernel(raw, number, views, epoch.committed_at, self.lookups.version_paths(versions))
            self.derived.join(number, result, views, before.mark)
            self.writer.end_phase("files")
            after = before.advance(epoch.ranges, result.max_event_time, epoch.committed_at)
            policy = build_watermark_policy(self.pipeline.definition, self.topic_ids)
            whole = replace(
                epoch,
                number=number,
                token=self.token,
                accepted=dict(result.accepted),
                refused=dict(result.refused),
                late=dict(result.late),
                very_late=dict(result.very_late),
                max_event_time=result.max_event_time,
                lookups=versions if raw.num_rows else {},
                watermark=after.watermark(policy, after.vector, epoch.committed_at),
            )
            self.derived.fold(whole, result, views, before.mark)
            self.derived.commit(self.writer.commit(whole, result, views))
            self.lookups.hold(versions)
            if self.pipeline.surveyed:
                self.surveys.commit(number)
        except Killed:
            self.derived.forget()
        Writer.repair_ledger(self.writer)
        self.surveys.settle(self.writer.master.epoch)
        self.held = known_epochs(self.layout)
        return self.held[-1] if self.held and self.held[-1].number == number else None

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics, by name."""
        return {topic: f"id of {topic}" for topic in self.pipeline.definition.topics}

    @property
    def positions(self) -> dict[Any, int]:
        """The end offset of every lane that was read."""
        return {part.lane: part.end for epoch in self.held for part in epoch.ranges}

    def last_seen(self, progress: Progress) -> dict[Any, Any]:
        """Return the instant of each lane's last record."""
        seen = {part.lane: epoch.committed_at for epoch in self.held for part in epoch.ranges}
        return {**progress.last_seen, **seen}

    def select_rules(self, raw: pa.Table) -> pa.Table:
        """Return the records of an epoch that are rules, with their coordinates."""
        mine = raw.filter(pc.is_in(raw["topic"], pa.array(sorted(self.lookups.topics), pa.string())))
        return add_coordinates(mine, self.topic_ids, NOTHING, self.pipeline.record_version)

    def kernel(
        self, raw: pa.Table, number: int, views: frozenset[str], at: datetime, lookups: dict[str, Location]
    ) -> Any:
        """Run the kernel in Spark's tasks; of no records Spark makes none, and the stream's epoch asks for none."""
        if not raw.num_rows:
            return KernelResult()
        config = KernelConfig(
            pipeline=self.writer.pipeline,
            topic_ids=self.topic_ids,
            token=self.token,
            epoch=number,
            committed=self.positions,
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            watermark=Progress.resume(self.held, {}, at, self.pipeline.timed).mark,
            at=at,
            lookups=lookups,
            # In turns: the driver merges an epoch's states, one part does, and two do.
            parts=0 if self.derived.any else number % 3,
            slices={view: slices.table.root for view, slices in self.writer.slices.items()},
        )
        frame = self.spark.createDataFrame(raw)
        if self.pipeline.surveyed:
            config = self.surveys.survey(frame, config)
        if config.parts:
            return run_epoch_in_parts(frame, config)
        return merge_task_reports(collect_reports(frame.mapInArrow(kernel_task(config), REPORT)))

    def restate(self, lookup: str, span: Interval, reason: str) -> Restatement:
        now = self.held[-1].committed_at if self.held else EPOCH
        made = restate_lookup(
            self.pipeline, self.layout, lookup, span, actor="scenario", reason=reason, now=now
        )
        if any(view.derived and lookup in view.derived.lookups for view in self.pipeline.views):
            self.commit_empty(restated=len(list_restatements(self.layout)))
        return made

    def commit_empty(self, **stated: Any) -> None:
        """Commit an empty edge, as the stream does between epochs."""
        last, result = self.held[-1], KernelResult()
        blank = Epoch(
            number=self.writer.take_number(),
            token=self.token,
            committed_at=last.committed_at,
            record_version=self.pipeline.record_version,
            edge=True,
            watermark=last.watermark,
            clock=self.pipeline.clock,
            **stated,
        )
        views = self.writer.current
        self.derived.fold(blank, result, views, last.watermark)
        self.derived.commit(self.writer.commit(blank, result, views))
        self.held = known_epochs(self.layout)

    def catch_up(self) -> None:
        """Catch up views of joins that are behind, as the stream does between epochs."""
        behind = [id for id in self.writer.behind if self.writer.slices[id].view.derived]
        while catch_up(self.spark, self.writer, behind):
            pass
        if set(behind) - self.writer.behind.keys():
            self.commit_empty()

    def build(self, asked: Interval | None, run: str) -> list[str]:
        reprocess_epochs(self.spark, self.pipeline, self.layout, until=self.writer.number)
        plan = plan_run(self.pipeline, self.layout, asked=asked, dirty=asked is None)
        if not plan.builds:
            return []
        build_intervals(self.spark, self.pipeline, self.layout, job_of(self.pipeline, plan, run=run))
        certificates = certify_run(self.pipeline, self.layout, run)
        if not any(each.good for each in certificates):
            require_passed(certificates)
        # What nothing explains is a defect of one of the layers, or of the explanation.
        alarms = [each.alarm for each in compare_run(self.pipeline, self.layout, run) if each.alarm]
        if alarms:
            raise AssertionError(f"unattributed: {alarms}")
        done = publish_run(self.pipeline, self.layout, run)
        if done.waiting:
            note_asked(self.layout, run)
        require_passed(certificates)
        self.catch_up()
        return sorted({each.interval for each in done.statements})

    def upkeep(self) -> None:
        """Compact and clean up, as the upkeep DAG does."""
        maintain_tables(self.pipeline, self.layout)

    def ledger(self) -> Sequence[Epoch]:
        return self.held

    def cuts(self) -> dict[tuple[str, str], int]:
        return cuts_of(self.pipeline, ManifestTable.ensure(self.layout).read())

    def quarantine(self) -> list[dict[str, Any]]:
        held = {epoch.number for epoch in self.held}
        columns = ["_topic", "_partition", "_offset", "_reason", "_detail", "_epoch"]
        rows = Table.open(self.layout.table("quarantine")).read(columns).to_pylist()
        return [row for row in rows if row["_epoch"] in held]

    def answer(self, view: str, side: Side) -> list[dict[str, Any]]:
        found = self.pipeline.view(view)
        assert found is not None
        request = ReadRequest(side=side, version=found.fingerprint)
        answer = merged_read.read_merged_answer(self.pipeline, found, self.layout, request)
        told = ("epoch", "certified", "complete", "phase")
        rows: list[dict[str, Any]] = answer.table.drop_columns(
            [name for name in told if name in answer.table.column_names]
        ).to_pylist()
        return rows
