"""Judging records again that another record version judged: the kernel over the raw bytes of master and quarantine.

Done once for a record version and epoch, whole epochs at a time, for a row may come, go or move into any interval.
What comes out is what a fresh read of the topic would have given: a record that was refused may be a row now.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.kernel.epoch_kernel import KernelConfig, engine, judged, refusals
from seamline.kernel.formats import reader_of
from seamline.kernel.judgement import REPEATED
from seamline.kernel.raw import chunks
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.log.record_files import Sink, filled
from seamline.lake.maintain.let_go import readable
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import restatements
from seamline.lake.tables.lookup_tables import keep
from seamline.lake.tables.rejudged import ATTEMPT, DETAIL, REASON, Rejudged, raise_floors, rows_schema
from seamline.lake.tables.view_versions import live
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.evolution import AND, earlier
from seamline.model.errors import Conflict, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH, stamp
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.rejudging_plan import Verdict, blocks, records_of, unjudged
from seamline.runtime.failpoints import swallow
from seamline.spark.tasks.deadly_records import MOST, WHY, culprit
from seamline.spark.tasks.deadly_suspects import Piece, Suspects
from seamline.spark.tasks.kernel_attempts import alive, said
from seamline.spark.tasks.task import FACTS, REPORT, limited, reported
from seamline.spark.tasks.task import SCHEMA as REPORTED

log = logging.getLogger("seamline.build")
RECORDS = 2_000_000
"""Records of one commit: what is lost when the job is killed."""
Judge = Callable[[pa.Table], tuple[pa.Table, pa.Table]]
"""Parts raw records with their coordinates into rows and refusals."""


def rejudge(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, *, until: int) -> int:
    """Judge every epoch up to ``until`` again that another record version judged; give how many records that were.

    What was done before, or is done by somebody else meanwhile, is not done again.
    """
    done, held = 0, Rejudged(pipeline, layout)
    while todo := unjudged(each_epoch(layout), pipeline.record_version, held.verdicts(), until=until):
        block, *_ = blocks(todo, RECORDS)
        try:
            done += judge_again(spark, pipeline, layout, block)
        except Conflict as conflict:
            log.info("%s", conflict.message)
    if held.verdicts():
        raise_floors(pipeline, layout, [view.id for view in live(pipeline, layout).views])
    return done


def judge_again(
    spark: SparkSession, pipeline: CompiledPipeline, layout: Layout, block: Sequence[Epoch]
) -> int:
    """Judge the records of some epochs and commit what comes out; give their number.

    Raises ProtocolError where a record that was read is not there, Conflict where somebody else was faster.
    """
    held, attempt = Rejudged(pipeline, layout), uuid.uuid4().hex
    # Before the look-ups: a restatement that is decided meanwhile is about these rows.
    known = len(restatements(layout))
    lookups = {join.name: keep(join, layout) for join in pipeline.record.lookups}
    task = Task(
        pipeline=pipeline,
        root=held.begin(attempt, [each.number for each in block]),
        attempt=attempt,
        processed={each.number: each.committed_at for each in block},
        lookups={name: layout.lookup(name, version) for name, version in lookups.items()},
    )
    stream = pipeline.definition.stream
    suspects = Suspects(
        layout.records(held.hash) / "attempt.json",
        f"{pipeline.record_version} {stream.worker_memory} {stream.memory}",
    )
    found = Found()
    for payload in outlived(raw_records(spark, pipeline, layout, block), task, block, suspects):
        found.add(Found.read(payload))
    for epoch in block:
        here = found.records(epoch.number)
        if here != readable(layout, epoch):
            raise ProtocolError(
                f"Epoch {epoch.number} read {records_of(epoch)} records, master and quarantine have {here}.",
                hint="nothing was written; run `seamline upkeep`, and look for files that somebody deleted.",
            )
    verdicts = [
        Verdict(
            each.number,
            attempt,
            dict(found.accepted[each.number]),
            dict(found.refused[each.number]),
            lookups,
            known,
        )
        for each in block
    ]
    held.commit(found.files, verdicts)
    suspects.over([part for epoch in block for part in epoch.ranges])
    return sum(map(records_of, block))


def outlived(frame: DataFrame, task: Task, block: Sequence[Epoch], suspects: Suspects) -> list[bytes]:
    """Run a task over the records of some epochs, and give its reports.

    A record that ends its worker each time is refused, and the others are judged: else no build would ever end. One
    that ends this process with it, or the JVM, is found by the runs that follow (``suspects``).
    ProtocolError where there are more than ``MOST``; what is no record's doing is raised as it came.
    """
    ranges = tuple(part for epoch in block for part in epoch.ranges)
    found: list[bytes] = []
    try:
        for piece in suspects.parts(ranges):
            some = frame if piece == ranges else frame.where(among(piece))
            found += apart(some, task, piece, suspects)
            suspects.witness = True
    except BaseException:
        # Of a JVM that has gone the run dies, and the next one is to know of what.
        if alive(frame.sparkSession):
            suspects.over()
        raise
    suspects.over()
    return found


def apart(frame: DataFrame, task: Task, piece: Piece, suspects: Suspects) -> list[bytes]:
    """Run a task over the records of a piece."""
    memory = task.pipeline.definition.stream.worker_memory

    def dies(some: Sequence[OffsetRange]) -> bool:
        trial = replace(task, condemned=tuple(suspects.condemned), dry=True)
        try:
            reported(frame.where(among(some)).mapInArrow(limited(trial, memory), REPORT))
        except Exception:
            if not alive(frame.sparkSession):
                raise
            return True
        return False

    while True:
        suspects.begin(piece)
        work = replace(task, condemned=tuple(suspects.condemned))
        try:
            return [payload for _, payload in reported(frame.mapInArrow(limited(work, memory), REPORT))]
        except Exception as error:
            found = culprit(piece, dies) if alive(frame.sparkSession) else None
            if found is None:
                raise
            log.error(
                "The record at %s ends the process that judges it, and is refused: %s", found, said(error)
            )
            suspects.condemned.append(found)
            if len(suspects.condemned) > MOST:
                raise ProtocolError(
                    f"More than {MOST} records end the process that judges them, {found} the last.",
                    hint="nothing was written; see Stream(worker_memory=...), and the transform.",
                ) from error


def among(ranges: Sequence[OffsetRange]) -> Column:
    """Return which raw records are in some ranges."""
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


def judged_rows(spark: SparkSession, pipeline: CompiledPipeline, layout: Layout) -> DataFrame | None:
    """Return the rows that were judged again and accepted, in the master's columns; None where there are none."""
    held = Rejudged(pipeline, layout)
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
    """Return all rows of the log as the record version has them: the master's own, and those judged again."""
    master = Master.open(layout).table
    pinned = spark.read.format("delta").option("versionAsOf", master.version if version is None else version)
    own = pinned.load(str(master.root)).where(fitting(pipeline.record_version))
    again = judged_rows(spark, pipeline, layout)
    return own if again is None else own.unionByName(again, allowMissingColumns=True)


def fitting(version: str) -> Column:
    """Return which rows are of a record version that fits: the same, one with fewer added columns, or with more."""
    found = f.col("_record_version")
    return found.isin(*earlier(version)) | found.startswith(version + AND)


class Found:
    """What tasks wrote, and counted by epoch: rows by interval id, refused records by reason."""

    def __init__(self) -> None:
        self.files: list[DataFile] = []
        self.accepted: dict[int, Counter[str]] = defaultdict(Counter)
        self.refused: dict[int, Counter[str]] = defaultdict(Counter)

    def records(self, epoch: int) -> int:
        """Count the records of an epoch."""
        return self.accepted[epoch].total() + self.refused[epoch].total()

    def count(self, rows: pa.Table, refused: pa.Table, length: int) -> None:
        """Count a chunk; intervals are ``length`` microseconds long."""
        moments = rows["_event_time"].cast(INSTANT).cast(pa.int64()).to_numpy()
        cells = pa.table({"epoch": rows["_epoch"], "cell": moments // length * length})
        for epoch, cell, count in counted(cells):
            self.accepted[epoch][stamp(EPOCH + cell * MICROSECOND)] += count
        for epoch, reason, count in counted(refused.select(["_epoch", REASON])):
            self.refused[epoch][reason] += count

    def add(self, other: Found) -> None:
        """Take in what another task found."""
        self.files += other.files
        for mine, theirs in ((self.accepted, other.accepted), (self.refused, other.refused)):
            for epoch, counts in theirs.items():
                mine[epoch].update(counts)

    def to_json(self) -> str:
        """Write it as a task reports it."""
        return json.dumps(
            {
                "files": [vars(each) for each in self.files],
                "accepted": list(self.accepted.items()),
                "refused": list(self.refused.items()),
            }
        )

    @classmethod
    def read(cls, text: bytes) -> Found:
        """Read what a task reported."""
        row, found = json.loads(text), cls()
        found.files = [DataFile(**each) for each in row["files"]]
        for name in ("accepted", "refused"):
            getattr(found, name).update({epoch: Counter(counts) for epoch, counts in row[name]})
        return found


def counted(places: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Count equal rows of a narrow table."""
    found = places.group_by(places.column_names).aggregate([([], "count_all")])
    columns = found.select([*places.column_names, "count_all"]).columns
    yield from zip(*(column.to_pylist() for column in columns), strict=True)


@dataclass(frozen=True)
class Task:
    """Judges raw records in a Spark task and writes what comes out below ``root``; ``processed`` is by epoch.

    What is ``condemned`` is refused without being judged; a ``dry`` task writes nothing.
    """

    pipeline: CompiledPipeline
    root: Path
    attempt: str
    processed: Mapping[int, datetime]
    lookups: Mapping[str, Path]
    condemned: tuple[OffsetRange, ...] = ()
    dry: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row of REPORT."""
        found, con, reader = Found(), engine(), reader_of(self.pipeline)
        config = self.config
        name = f"{ATTEMPT}={self.attempt}/{uuid.uuid4().hex}.parquet"
        sink = Sink(self.root, name, rows_schema(self.pipeline), partition={ATTEMPT: self.attempt})
        length = self.pipeline.grid.length // MICROSECOND

        def judge(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
            swallow(raw["_value"])
            return judged(con, raw, config, reader)

        for chunk in chunks(batches):
            for rows, refused in self.parts(self.raw(chunk), judge):
                if not self.dry:
                    sink.write(filled(rows, sink.schema))
                    sink.write(filled(refused, sink.schema))
                found.count(rows, refused, length)
        found.files = sink.close()
        yield pa.RecordBatch.from_pylist(
            [{"kind": FACTS, "payload": found.to_json().encode()}], schema=REPORTED
        )

    @property
    def config(self) -> KernelConfig:
        """Say to the kernel what this is about; rows bear the numbers of their own epochs."""
        return KernelConfig(
            pipeline=self.pipeline,
            topic_ids={},
            token=0,
            epoch=NOTHING,
            held={},
            views=frozenset(),
            master=self.root,
            quarantine=self.root,
            lookups=self.lookups,
        )

    def parts(self, raw: pa.Table, judge: Judge) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Judge records, but those that are condemned."""
        places = zip(*(raw[name].to_pylist() for name in ("_topic_id", "_partition", "_offset")), strict=True)
        doomed = {(part.lane.topic_id, part.lane.partition, part.start) for part in self.condemned}
        if doomed and any(mask := [place in doomed for place in places]):
            yield refused_unread(raw.filter(pa.array(mask)), WHY)
            raw = raw.filter(pa.array([not each for each in mask]))
        yield from sound(raw, judge)

    def raw(self, chunk: pa.Table) -> pa.Table:
        """Return records as the kernel takes them: with our record version, and when they were processed."""
        count = chunk.num_rows
        at = chunk.schema.get_field_index("_record_version")
        version = pa.repeat(pa.scalar(self.pipeline.record_version), count)
        chunk = chunk.set_column(at, "_record_version", version)
        if self.pipeline.record.dedup:
            # Duplicates are taken out by the build, exactly.
            chunk = chunk.append_column(REPEATED, pa.repeat(pa.scalar(False), count))
        moments = pa.array([self.processed[epoch] for epoch in chunk["_epoch"].to_pylist()], INSTANT)
        return chunk.append_column("_processing_time", moments)


def sound(raw: pa.Table, judge: Judge) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Judge records; where that fails, each half alone, down to the record that cannot be judged (rule 17)."""
    try:
        yield judge(raw)
    except Exception as error:  # noqa: BLE001 - whatever it is, it would have condemned the record when read
        if raw.num_rows > 1:
            half = raw.num_rows // 2
            yield from sound(raw.slice(0, half), judge)
            yield from sound(raw.slice(half), judge)
        else:
            yield refused_unread(raw, f"{type(error).__name__}: {error}"[:500])


def refused_unread(raw: pa.Table, why: str) -> tuple[pa.Table, pa.Table]:
    """Refuse records for what the kernel cannot bear."""
    none = raw.slice(0, 0).append_column("_event_time", pa.array([], INSTANT))
    return none, refusals(raw, "kernel error", why)
