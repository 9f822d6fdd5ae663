"""Validating the records of another record version again: the kernel over the raw bytes of master and quarantine.

Done once for a record version and epoch, whole epochs at a time, for a row may come, go or move into any interval.
What comes out is what a fresh read of the topic would have given: a record that was refused may be a row now.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.lake.imports.import_plans import load_plan
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.maintain.released_records import count_readable_records
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.store.promises import is_on_disk
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.lookups.lookup_tables import keep_lookup_version
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import ATTEMPT, DETAIL, REASON, Reprocessed, raise_floors
from seamline.lake.tables.schemas.kept_schemas import open_kept_schemas, require_registry
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.evolution import AND, list_earlier_versions
from seamline.model.errors import Conflict, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import IMPORTED, OffsetRange
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    list_open_births,
    list_outdated_epochs,
    records_of,
    split_epochs,
)
from seamline.spark.build.reprocessed_copies import are_copies_flagged, find_repeated_records
from seamline.spark.build.reprocessing_task import ReprocessedRows, Task
from seamline.spark.tasks.deadly_records import MOST, find_deadly_record
from seamline.spark.tasks.deadly_suspects import Piece, Suspects
from seamline.spark.tasks.kernel_attempts import find_worker_message, is_session_alive
from seamline.spark.tasks.rule_history import RuleHistory
from seamline.spark.tasks.task import REPORT, collect_reports, limit_task_memory

log = logging.getLogger("seamline.build")
RECORDS = 2_000_000
"""Records of one commit: what is lost when the job is killed."""


def reprocess_epochs(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, *, until: int) -> int:
    """Reprocess every epoch of another record version up to ``until``; return how many records that were.

    What was done before, or is done by another process meanwhile, is not done again.
    """
    for name in pipeline.definition.registries:
        require_registry(layout.schemas, name)
    done, held, rules = 0, Reprocessed(pipeline, layout), RuleHistory(spark, pipeline, layout)
    while todo := list_outdated_epochs(
        each_epoch(layout), pipeline.record_version, held.verdicts(), until=until
    ):
        block, *_ = split_epochs(todo, RECORDS)
        try:
            done += reprocess_block(spark, pipeline, layout, rules, block)
        except Conflict as conflict:
            log.info("%s", conflict.message)
    views = add_live_versions(pipeline, layout).views
    # A birth may wait for epochs that the log has lost since: nothing is left to validate again then.
    born = list_open_births(ManifestTable.ensure(layout).read(), [view.id for view in views])
    if held.verdicts() or born:
        raise_floors(pipeline, layout, views)
    return done


def find_attempt_note(layout: Layout, hash: str) -> Path:
    """Return the file of the note about attempts, which is about this machine."""
    folder = layout.records(hash)
    if not is_on_disk(folder):
        folder = home_folder() / "reprocessing" / layout.pipeline / hash
    return folder / "attempt.json"


def find_borders(layout: Layout, block: Sequence[Epoch]) -> dict[str, datetime]:
    """Find from which event time on imports that some epochs have read leave rows to the topic, by their topic ids."""
    lanes = {part.lane.topic_id for epoch in block for part in epoch.ranges if part.lane.imported}
    borders = {id: load_plan(layout, id.removeprefix(IMPORTED)).options.until for id in sorted(lanes)}
    return {id: until for id, until in borders.items() if until}


def reprocess_block(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    rules: RuleHistory,
    block: Sequence[Epoch],
) -> int:
    """Validate the records of some epochs and commit what comes out; return their number.

    Raises ProtocolError if a record that was read is not there, Conflict if another run was faster.
    """
    held = Reprocessed(pipeline, layout)
    # Before the look-ups: a restatement that is decided meanwhile is about these rows.
    known = len(list_restatements(layout))
    kept = {join.name: keep_lookup_version(join, layout) for join in pipeline.lookups if not join.of}
    lookups = {number: {**kept, **versions} for number, versions in rules.list_met(block).items()}
    numbers = [each.number for each in block]
    task = Task(
        pipeline=pipeline,
        root=held.begin(attempt := uuid.uuid4().hex, numbers),
        attempt=attempt,
        processed={each.number: each.committed_at for each in block},
        lookups={
            number: {name: layout.lookup(name, version) for name, version in versions.items()}
            for number, versions in lookups.items()
        },
        until=find_borders(layout, block),
        kept=open_kept_schemas(layout),
    )
    stream = pipeline.definition.stream
    suspects = Suspects(
        find_attempt_note(layout, held.hash),
        f"{pipeline.record_version} {stream.worker_memory} {stream.memory}",
    )
    raw = raw_records(spark, pipeline, layout, block)
    found = validate_block(raw, task, block, suspects)
    if are_copies_flagged(pipeline):
        rows = log_of(spark, pipeline, layout)
        marks = find_repeated_records(pipeline, task.root, found.files, rows, block)
        if marks.num_rows:
            # What was written without flags is of an attempt that nobody commits.
            held.begin(attempt := uuid.uuid4().hex, numbers)
            task = replace(task, attempt=attempt, marks=marks)
            found = validate_block(raw, task, block, suspects)
    for epoch in block:
        here = found.records(epoch.number)
        if here != count_readable_records(layout, epoch):
            raise ProtocolError(
                f"Epoch {epoch.number} read {records_of(epoch)} records, but master and quarantine have {here}.",
                hint="nothing was written; run `seamline upkeep`, and check for files that were deleted.",
            )
    verdicts = [
        Verdict(
            each.number,
            attempt,
            dict(found.accepted[each.number]),
            dict(found.refused[each.number]),
            lookups[each.number],
            known,
        )
        for each in block
    ]
    held.commit(found.files, verdicts)
    suspects.finish([part for epoch in block for part in epoch.ranges])
    return sum(map(records_of, block))


def validate_block(raw: DataFrame, task: Task, block: Sequence[Epoch], suspects: Suspects) -> ReprocessedRows:
    """Run a task over the records of some epochs, and add up what it reports."""
    found = ReprocessedRows()
    for payload in run_past_deadly_records(raw, task, block, suspects):
        found.add(ReprocessedRows.read(payload))
    return found


def run_past_deadly_records(
    frame: DataFrame, task: Task, block: Sequence[Epoch], suspects: Suspects
) -> list[bytes]:
    """Run a task over the records of some epochs, and return its reports.

    A record that ends its worker each time is refused, and the others are validated: else no build would ever end. One
    that ends this process with it, or the JVM, is found by the runs that follow (``suspects``).
    ProtocolError if there are more than ``MOST``; what is no record's doing is raised as it came.
    """
    ranges = tuple(part for epoch in block for part in epoch.ranges)
    found: list[bytes] = []
    try:
        for piece in suspects.partition(ranges):
            some = frame if piece == ranges else frame.where(in_ranges_condition(piece))
            found += run_piece_task(some, task, piece, suspects)
            suspects.witness = True
    except BaseException:
        # Of a JVM that has gone the run dies, and the next one is to know of what.
        if is_session_alive(frame.sparkSession):
            suspects.finish()
        raise
    suspects.finish()
    return found


def run_piece_task(frame: DataFrame, task: Task, piece: Piece, suspects: Suspects) -> list[bytes]:
    """Run a task over the records of a piece."""
    memory = task.pipeline.definition.stream.worker_memory

    def dies(some: Sequence[OffsetRange]) -> bool:
        trial = replace(task, condemned=tuple(suspects.condemned), dry=True)
        try:
            collect_reports(
                frame.where(in_ranges_condition(some)).mapInArrow(limit_task_memory(trial, memory), REPORT)
            )
        except Exception:
            if not is_session_alive(frame.sparkSession):
                raise
            return True
        return False

    while True:
        suspects.begin(piece)
        work = replace(task, condemned=tuple(suspects.condemned))
        try:
            return [
                payload
                for _, payload in collect_reports(frame.mapInArrow(limit_task_memory(work, memory), REPORT))
            ]
        except Exception as error:
            found = find_deadly_record(piece, dies) if is_session_alive(frame.sparkSession) else None
            if found is None:
                raise
            log.error(
                "The record at %s ends the process that validates it, and is refused: %s",
                found,
                find_worker_message(error),
            )
            suspects.condemned.append(found)
            if len(suspects.condemned) > MOST:
                raise ProtocolError(
                    f"More than {MOST} records end the process that validates them, the last one at {found}.",
                    hint="nothing was written; check Stream(worker_memory=...) and the transform.",
                ) from error


def in_ranges_condition(ranges: Sequence[OffsetRange]) -> Column:
    """Return the condition that a raw record is in some ranges."""
    places = [
        (f.col("_topic_id") == part.lane.topic_id)
        & (f.col("_partition") == part.lane.partition)
        & f.col("_offset").between(part.start, part.end - 1)
        for part in ranges
    ]
    return reduce(or_, places, f.lit(False))


def raw_records(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, block: Sequence[Epoch]
) -> DataFrame:
    """Return the coordinates and bytes of all that some epochs read, accepted or refused."""
    epochs = [each.number for each in block]
    tables = [Master.open(layout).table, Table.open(layout.table("quarantine"))]
    parts = []
    for table in tables:
        rows = spark.read.format("delta").option("versionAsOf", table.version).load(str(table.root))
        within = f.col("_epoch").between(epochs[0], epochs[-1]) & f.col("_epoch").isin(epochs)
        parts.append(rows.where(within).select(*COORDINATES.names))
    return parts[0].unionByName(parts[1])


def read_reprocessed_rows(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout
) -> DataFrame | None:
    """Read the rows that were validated again and accepted, in the master's columns; None if there are none."""
    held = Reprocessed(pipeline, layout)
    attempts = {each.attempt for each in held.verdicts().values()}
    if not attempts:
        return None
    table = held.rows()
    rows = spark.read.format("delta").option("versionAsOf", table.version).load(str(table.root))
    counted = rows.where(f.col(ATTEMPT).isin(sorted(attempts)) & f.col(REASON).isNull())
    return counted.drop(ATTEMPT, REASON, DETAIL)


def log_of(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, *, version: int | None = None
) -> DataFrame:
    """Return all rows of the log as the record version has them: the master's own, and those validated again."""
    master = Master.open(layout).table
    pinned = spark.read.format("delta").option("versionAsOf", master.version if version is None else version)
    own = pinned.load(str(master.root)).where(fitting_version_condition(pipeline.record_version))
    again = read_reprocessed_rows(spark, pipeline, layout)
    return own if again is None else own.unionByName(again, allowMissingColumns=True)


def fitting_version_condition(version: str) -> Column:
    """Return which rows are of a record version that fits: the same, one with fewer added columns, or with more."""
    found = f.col("_record_version")
    return found.isin(*list_earlier_versions(version)) | found.startswith(version + AND)
