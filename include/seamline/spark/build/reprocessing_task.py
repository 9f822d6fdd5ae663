"""Validating records again inside Spark's tasks: what a task is given, and what it reports."""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.halving import Judge, reject_unreadable, validate_by_halves
from seamline.kernel.kernel_config import KernelConfig, configure_validation
from seamline.kernel.marks import join_marks
from seamline.kernel.raw import combine_small_batches, filter_rows, reject_all_rows
from seamline.lake.log.record_files import Sink, fill_missing_columns
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.data_files import DataFile
from seamline.lake.store.locations import Location
from seamline.lake.tables.reprocessed import ATTEMPT, REASON, rows_schema
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.runtime.failpoints import fail_on_poison
from seamline.spark.tasks.deadly_records import WHY
from seamline.spark.tasks.task import FACTS
from seamline.spark.tasks.task import SCHEMA as REPORTED


class ReprocessedRows:
    """What tasks wrote, and counted by epoch: rows by interval id, refused records by reason."""

    def __init__(self) -> None:
        self.files: list[DataFile] = []
        self.accepted: dict[int, Counter[str]] = defaultdict(Counter)
        self.refused: dict[int, Counter[str]] = defaultdict(Counter)

    def records(self, epoch: int) -> int:
        """Count the records of an epoch."""
        return self.accepted[epoch].total() + self.refused[epoch].total()

    def count_chunk(self, rows: pa.Table, refused: pa.Table, length: int) -> None:
        """Count a chunk; intervals are ``length`` microseconds long."""
        moments = rows["_event_time"].cast(INSTANT).cast(pa.int64()).to_numpy()
        cells = pa.table({"epoch": rows["_epoch"], "cell": moments // length * length})
        for epoch, cell, count in count_equal_rows(cells):
            self.accepted[epoch][format_utc_instant(EPOCH + cell * MICROSECOND)] += count
        for epoch, reason, count in count_equal_rows(refused.select(["_epoch", REASON])):
            self.refused[epoch][reason] += count

    def add(self, other: ReprocessedRows) -> None:
        """Add what another task found."""
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
    def read(cls, text: bytes) -> ReprocessedRows:
        """Read what a task reported."""
        row, found = json.loads(text), cls()
        found.files = [DataFile(**each) for each in row["files"]]
        for name in ("accepted", "refused"):
            getattr(found, name).update({epoch: Counter(counts) for epoch, counts in row[name]})
        return found


def count_equal_rows(places: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Count equal rows of a narrow table."""
    found = places.group_by(places.column_names).aggregate([([], "count_all")])
    columns = found.select([*places.column_names, "count_all"]).columns
    yield from zip(*(column.to_pylist() for column in columns), strict=True)


LEFT = "left to the topic"
"""Why an imported row is refused that the topic has."""


def refuse_left_rows(
    accepted: pa.Table, refused: pa.Table, until: Mapping[str, datetime]
) -> tuple[pa.Table, pa.Table]:
    """Refuse imported rows that are of a time from which on the topic has them: once they had no time, or another."""
    for topic_id, bound in until.items():
        left = pc.and_(
            pc.equal(accepted["_topic_id"], topic_id),
            pc.greater_equal(accepted["_event_time"], pa.scalar(bound, INSTANT)),
        )
        if pc.any(left).as_py():
            gone = reject_all_rows(accepted.filter(left), LEFT, "")
            refused = pa.concat_tables([refused, gone.select(refused.column_names)])
            accepted = accepted.filter(pc.invert(left))
    return accepted, refused


@dataclass(frozen=True)
class Task:
    """Validates raw records again in a Spark task and writes the result."""

    pipeline: CompiledPipeline
    """By which records are validated."""
    root: Location
    """The folder of the table of rows."""
    attempt: str
    """The attempt's name, by which the table of rows is partitioned."""
    processed: Mapping[int, datetime]
    """When each epoch was committed, by its number: the processing time of its rows."""
    lookups: Mapping[int, Mapping[str, Location]]
    """The file of each look-up's version, by look-up name, of each epoch."""
    kept: KeptSchemas | None = None
    """The writers' schemas of registries; None where no source has one."""
    condemned: tuple[OffsetRange, ...] = ()
    """Records to refuse without validating them, one offset each."""
    dry: bool = False
    """Whether to write nothing."""
    until: Mapping[str, datetime] = field(default_factory=dict)
    """By the topic id of an import's lane the event time from which on its rows are left to the topic."""
    marks: pa.Table | None = None
    """Which records repeat an event id; None if that is left to builds."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row of REPORT."""
        found, con, readers = ReprocessedRows(), open_worker_duckdb(), open_readers(self.pipeline, self.kept)
        name = f"{ATTEMPT}={self.attempt}/{uuid.uuid4().hex}.parquet"
        sink = Sink(self.root, name, rows_schema(self.pipeline), partition={ATTEMPT: self.attempt})
        length = self.pipeline.grid.length // MICROSECOND

        for chunk in combine_small_batches(batches):
            for lookups, raw in self.split_by_lookups(self.raw(con, chunk)):
                config = configure_validation(self.pipeline, lookups)

                def judge(some: pa.Table, config: KernelConfig = config) -> tuple[pa.Table, pa.Table]:
                    fail_on_poison(some["_value"])
                    return refuse_left_rows(*validate_records(con, some, config, readers), self.until)

                for rows, refused in self.parts(raw, judge):
                    if not self.dry:
                        sink.write(fill_missing_columns(rows, sink.schema))
                        sink.write(fill_missing_columns(refused, sink.schema))
                    found.count_chunk(rows, refused, length)
        found.files = sink.close()
        yield pa.RecordBatch.from_pylist(
            [{"kind": FACTS, "payload": found.to_json().encode()}], schema=REPORTED
        )

    def split_by_lookups(self, raw: pa.Table) -> Iterator[tuple[Mapping[str, Location], pa.Table]]:
        """Yield records that meet the same versions of look-ups together, with their files."""
        epochs: dict[tuple[tuple[str, Location], ...], list[int]] = {}
        for epoch in pc.unique(raw["_epoch"]).to_pylist():
            epochs.setdefault(tuple(self.lookups[epoch].items()), []).append(epoch)
        for lookups, numbers in epochs.items():
            yield dict(lookups), filter_rows(raw, pc.is_in(raw["_epoch"], pa.array(numbers, pa.int64())))

    def parts(self, raw: pa.Table, judge: Judge) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Validate all records except those that are condemned."""
        places = zip(*(raw[name].to_pylist() for name in ("_topic_id", "_partition", "_offset")), strict=True)
        doomed = {(part.lane.topic_id, part.lane.partition, part.start) for part in self.condemned}
        if doomed and any(mask := [place in doomed for place in places]):
            yield reject_unreadable(raw.filter(pa.array(mask)), WHY)
            raw = raw.filter(pa.array([not each for each in mask]))
        yield from validate_by_halves(raw, judge)

    def raw(self, con: duckdb.DuckDBPyConnection, chunk: pa.Table) -> pa.Table:
        """Return records as the kernel takes them: with our record version, and when they were processed."""
        count = chunk.num_rows
        at = chunk.schema.get_field_index("_record_version")
        version = pa.repeat(pa.scalar(self.pipeline.record_version), count)
        chunk = chunk.set_column(at, "_record_version", version)
        if self.pipeline.record.dedup:
            # No events are numbered here.
            chunk = join_marks(con, chunk, replace(self.pipeline, views=()), self.marks)
        moments = pa.array([self.processed[epoch] for epoch in chunk["_epoch"].to_pylist()], INSTANT)
        return chunk.append_column("_processing_time", moments)
