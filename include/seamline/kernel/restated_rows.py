"""Judging rows again by restated look-ups: one meaning for builds and for those who check them.

A row keeps its coordinates, its record version and whether it is a duplicate; everything else that its bytes and
the look-ups make of it is made again by the kernel.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.raw import combine_small_batches
from seamline.kernel.validation import REPEATED
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, master_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.reprocessed import Reprocessed, log_beside
from seamline.lake.tables.schemas.kept_schemas import open_kept_schemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.evolution import AND, is_compatible_version
from seamline.model.compile.record_rules import DUPLICATE, PROCESSING_TIME
from seamline.model.errors import NotRestatable
from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.restatement import Restatement, apply_restatements, carry_restatements
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Schema
from seamline.plan.batch.reprocessing_plan import Verdict, apply_verdicts

HINT = "a restatement changes what a row says, not whether or where it is: correct the table, then restate with it."
TROUBLE = "_trouble"
"""The column in which tasks say what their caller raises."""
Versions = tuple[tuple[str, str], ...]
"""The name of each look-up with its version."""
Asked = tuple[str, Versions]
"""The record version of a row, and the look-ups by which it is reprocessed."""


def open_reprocessing(
    pipeline: CompiledPipeline, layout: Layout, decisions: Sequence[Restatement]
) -> RowReprocessing:
    """Read by what rows were validated first, for decisions, the first of all in their order."""
    verdicts = Reprocessed(pipeline, layout).verdicts()
    return RowReprocessing.of(pipeline, layout, log_beside(layout, verdicts), decisions, verdicts)


@dataclass(frozen=True)
class RowReprocessing:
    """What restatements change in rows."""

    pipeline: CompiledPipeline
    """What the rows are of."""
    layout: Layout
    """Where its look-ups are."""
    decisions: tuple[Restatement, ...]
    """In the order in which they were made."""
    first: tuple[int, ...]
    """Epochs that read other versions of look-ups than the one before, ascending."""
    read: tuple[Mapping[str, str], ...]
    """Versions of the look-ups of each of these, by look-up name."""
    known: tuple[int, ...]
    """How many of the decisions had been made by each of these."""
    carried: tuple[Restatement | None, ...] = ()
    """What each of the decisions means for rows that were validated again after it; None for nothing."""

    @classmethod
    def of(
        cls,
        pipeline: CompiledPipeline,
        layout: Layout,
        epochs: Iterable[Epoch],
        decisions: Iterable[Restatement],
        verdicts: Mapping[int, Verdict] | None = None,
    ) -> RowReprocessing:
        """Take the look-ups of the first validation from the ledger and from the verdicts of reprocessed epochs.

        ``decisions`` are all of them, in their order.
        """
        first, read, known = list[int](), list[Mapping[str, str]](), list[int]()
        verdicts, decisions = verdicts or {}, tuple(decisions)
        topics = {join.name for join in pipeline.lookups if join.of}
        again = {number: verdict.lookups for number, verdict in verdicts.items()}
        carried = carry_restatements(decisions, topics, again)
        for epoch in apply_verdicts(epochs, pipeline.record_version, verdicts):
            number = verdicts[epoch.number].restated if epoch.number in verdicts else 0
            if epoch.lookups and (not read or (read[-1], known[-1]) != (epoch.lookups, number)):
                first.append(first_of(epoch))
                read.append(epoch.lookups)
                known.append(number)
        return cls(
            pipeline, layout, decisions, tuple(first), tuple(read), tuple(known), carried=tuple(carried)
        )

    def reprocess_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Judge rows of the master again, or say in TROUBLE why not; runs in a task."""
        for chunk in combine_small_batches(batches):
            rows, trouble = chunk.drop_columns([TROUBLE]), None
            try:
                rows = self(rows)
            except NotRestatable as problem:
                trouble = problem.message
            said = pa.repeat(pa.scalar(trouble, pa.string()), rows.num_rows)
            yield from rows.append_column(TROUBLE, said).to_batches()

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return rows of the master as they are now said to be, in any order.

        Raises NotRestatable for one that would be refused now, or would be in another interval.
        """
        parts = []
        with open_duckdb() as con:
            for asked, places in self.split(rows).items():
                mine = rows.take(pa.array(places))
                parts.append(self.validate(con, mine, *asked) if asked else mine)
        return pa.concat_tables([part.cast(rows.schema) for part in parts]) if parts else rows

    def split(self, rows: pa.Table) -> Mapping[Asked | None, Sequence[int]]:
        """Part the places of rows by what they are validated by; None are those that stay as they are."""
        known: dict[tuple[int, int, str], Asked | None] = {}
        found: dict[Asked | None, list[int]] = {}
        columns = (
            rows["_epoch"].to_pylist(),
            number_intervals(rows["_event_time"], self.interval_length),
            rows["_record_version"].to_pylist(),
        )
        for at, place in enumerate(zip(*columns, strict=True)):
            if place not in known:
                known[place] = self.lookups_of(*place)
            found.setdefault(known[place], []).append(at)
        return found

    @property
    def interval_length(self) -> int:
        """The length of an interval in microseconds."""
        return self.pipeline.grid.length // MICROSECOND

    def lookups_of(self, epoch: int, cell: int, version: str) -> Asked | None:
        """Say by what rows of an epoch, interval (by its number) and record version are validated."""
        at = bisect_right(self.first, epoch) - 1
        if at < 0 or not is_compatible_version(version, self.pipeline.record_version):
            return None
        moment = EPOCH + timedelta(microseconds=cell * self.interval_length)
        known = self.known[at]
        carried = [each for each in self.carried[:known] if each]
        meant = apply_restatements([*carried, *self.decisions[known:]], self.read[at], moment, epoch)
        return (version, tuple(meant.items())) if meant != self.read[at] else None

    def validate(
        self, con: duckdb.DuckDBPyConnection, rows: pa.Table, version: str, versions: Versions
    ) -> pa.Table:
        """Let the kernel validate rows of one record version by these look-ups."""
        pipeline = as_read(self.pipeline, version)
        lookups = {name: self.layout.lookup(name, kept) for name, kept in versions}
        config = configure_validation(pipeline, lookups, bounded=False)
        raw = rows.select(COORDINATES.names)
        if pipeline.record.dedup:
            raw = raw.append_column(REPEATED, rows[DUPLICATE])
        if any(source.event_time == PROCESSING_TIME for source in pipeline.definition.sources):
            raw = raw.append_column("_processing_time", rows["_event_time"])
        accepted, refused = validate_records(
            con, raw, config, open_readers(pipeline, open_kept_schemas(self.layout))
        )
        if refused.num_rows:
            [row] = refused.slice(0, 1).to_pylist()
            raise restatement_error(row, versions, f"is refused: {row['_reason']} {row['_detail']}".strip())
        was, now = (
            number_intervals(table["_event_time"], self.interval_length) for table in (rows, accepted)
        )
        for at in (at for at, (a, b) in enumerate(zip(was, now, strict=True)) if a != b):
            [row] = accepted.slice(at, 1).to_pylist()
            raise restatement_error(
                row, versions, f"moves to {format_utc_instant(row['_event_time'])}, into another interval"
            )
        for field in list(master_schema(pipeline))[len(COORDINATES) :]:
            rows = rows.set_column(rows.schema.get_field_index(field.name), field, accepted[field.name])
        return rows


def number_intervals(moments: pa.ChunkedArray, length: int) -> list[int]:
    """Number the intervals of instants from 1970."""
    numbers: list[int] = (moments.cast(INSTANT).cast(pa.int64()).to_numpy() // length).tolist()
    return numbers


def as_read(pipeline: CompiledPipeline, version: str) -> CompiledPipeline:
    """Leave out the columns that were not yet added when rows of a record version were read, and who uses them."""
    record = pipeline.record
    added = record.added[: version.count(AND)]
    if added == record.added:
        return pipeline
    gone = set(record.added) - set(added)
    parsed = Schema(tuple(field for field in record.parsed.fields if field not in gone))
    views = tuple(view for view in pipeline.views if not gone & set(view.uses))
    return replace(pipeline, record=replace(record, parsed=parsed, added=added), views=views)


def restatement_error(row: Mapping[str, object], versions: Versions, what: str) -> NotRestatable:
    """Say which row cannot be restated."""
    named = ", ".join(f"{name} {version}" for name, version in versions)
    return NotRestatable(
        f"{row['_topic']}/{row['_partition']}@{row['_offset']} of epoch {row['_epoch']}, reprocessed with "
        f"{named}, {what}.",
        hint=HINT,
    )
