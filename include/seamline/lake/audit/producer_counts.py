"""What was read of an interval, counted by producer from the log, beside what producers say that they have sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql, span_start_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.log.epoch_log import list_accepting_epochs
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.committed_log import committed_epochs_sql, keep_epoch_files
from seamline.lake.tables.counts.statements_table import list_producers, read_statements
from seamline.lake.tables.reprocessed import REASON, Reprocessed, rows_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.record_rules import SOURCE
from seamline.model.definition.counts import Counts
from seamline.model.protocol.counts.comparison import Read, SourceCounts, compare_counts
from seamline.model.protocol.counts.statement import MICROSECOND, find_step, list_current_statements
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import EPOCH, Interval, parse_duration

AT_ONCE = 20_000
"""Refused records that are looked into together."""
TIMED = "_kafka_timestamp"
EARLIEST = datetime.min.replace(tzinfo=UTC)
Place = Callable[[CompiledPipeline, str, pa.Table], pa.Table]
"""Finds ``at`` and ``producer`` of refused records of one source, by its pipeline and the column of the producer."""
Reads = dict[str, dict[datetime, Read]]


@dataclass(frozen=True)
class Counting:
    """What is counted."""

    pipeline: CompiledPipeline
    """The pipeline of the source alone, or the one that has it as its only source."""
    named: str
    """The name of the source; empty for the only one."""
    counts: Counts
    """What it says of its producers."""
    interval: Interval
    """The interval."""
    cut: int
    """The last epoch that counts."""
    step: timedelta
    """The spans by which it is counted."""
    producers: tuple[str, ...]
    """Those that are told from others."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The interval in microseconds from 1970."""
        return to_unix_micros(self.interval.start), to_unix_micros(self.interval.end)

    @property
    def producer_sql(self) -> str:
        """Write a row's producer: NULL for one that nobody expects, "" where records name none."""
        if not self.counts.producer:
            return "''"
        column = f"CAST({quote_identifier(self.counts.producer)} AS VARCHAR)"
        known = ", ".join(map(quote_literal, self.producers))
        return f"CASE WHEN {column} IN ({known}) THEN {column} END" if known else "NULL::VARCHAR"

    @property
    def step_sql(self) -> str:
        """Write the start of a row's step, in microseconds from 1970."""
        return span_start_sql("epoch_us(_event_time)", self.step // MICROSECOND)


def count_producers(
    pipeline: CompiledPipeline,
    layout: Layout,
    source: str,
    interval: Interval,
    cut: int,
    epochs: Sequence[Epoch],
    place: Place,
) -> SourceCounts:
    """Compare an interval, as the log has it up to a cut, with the statements that the warehouse has of it.

    ``epochs`` are the log; ``source`` is the name of a source whose producers make statements.
    """
    alone = next(each for each in pipeline.by_source if each.source.name == source)
    counts = alone.source.counts
    assert counts
    remembered = parse_duration(counts.remember)
    since = max(interval.start, EARLIEST + remembered) - remembered
    stated = list_current_statements(read_statements(layout, source, interval))
    known = list_producers(layout, source, Interval(since, interval.end))
    expected = sorted({*counts.producers, *known})
    windows = [each.window for found in stated.values() for each in found]
    step = find_step(pipeline.grid.length, windows)
    asked = Counting(alone, source, counts, interval, cut, step, tuple(expected))
    found, others = count_accepted_rows(pipeline, layout, asked)
    unplaced = add_refused_records(pipeline, layout, asked, epochs, place, found)
    return compare_counts(
        source,
        interval,
        stated,
        expected,
        found,
        named=bool(counts.producer),
        others=others,
        unplaced=unplaced,
    )


def count_accepted_rows(pipeline: CompiledPipeline, layout: Layout, asked: Counting) -> tuple[Reads, int]:
    """Count the rows of an interval by producer and step, and those of nobody who is expected."""
    found: Reads = {}
    others = 0
    rows = log_rows_sql(pipeline, layout, [asked.bounds], asked.cut)
    own = f"WHERE {quote_identifier(SOURCE)} = {quote_literal(asked.named)}" if asked.named else ""
    ids = list_id_expressions(pipeline, quote_identifier)
    parts = f"SELECT {asked.producer_sql} AS producer, {asked.step_sql} AS step, count(*) AS rows"
    # A row for each id and no list of them: what does not fit into memory goes to disk.
    named = "".join(f", {each} AS id_{number}" for number, each in enumerate(ids))
    query = f"SELECT producer, step, sum(rows)::BIGINT, {'count(*)' if ids else 'sum(rows)::BIGINT'} FROM "
    query += f"({parts}{named} FROM {rows} {own} GROUP BY ALL) GROUP BY ALL"
    with register_tables(blank=rows_schema(pipeline).empty_table()) as con:
        for producer, step, count, distinct in con.sql(query).fetchall():
            if producer is None:
                others += count
            else:
                start = EPOCH + step * MICROSECOND
                found.setdefault(producer, {})[start] = Read(count, count - distinct)
    return found, others


def add_refused_records(
    pipeline: CompiledPipeline,
    layout: Layout,
    asked: Counting,
    epochs: Sequence[Epoch],
    place: Place,
    found: Reads,
) -> int:
    """Add refused records to what was read of an interval; return how many may belong to it, or to another.

    Those are looked at that Kafka got at about that time, from ``max_future`` before the interval until ``very_late``
    after it, and those of epochs that brought rows of it, as a replay's do.
    """
    unplaced, placed = 0, Counter[tuple[str, datetime]]()
    for rows in read_refused_records(pipeline, layout, asked, epochs):
        places = place(asked.pipeline, asked.counts.producer, rows)
        unknown = pc.is_null(places["at"])
        if asked.counts.producer:
            unknown = pc.or_(unknown, pc.is_null(places["producer"]))
        unplaced += pc.sum(unknown).as_py() or 0
        placed.update(list_steps(places.filter(pc.invert(unknown)), asked))
    for (producer, start), count in placed.items():
        steps = found.setdefault(producer, {})
        before = steps.get(start, Read())
        steps[start] = replace(before, refused=before.refused + count)
    return unplaced


def list_steps(places: pa.Table, asked: Counting) -> Iterator[tuple[str, datetime]]:
    """List producer and step of each record that is of the interval and of somebody who is expected."""
    known: Collection[str] = set(asked.producers)
    for at, producer in zip(places["at"].to_pylist(), places["producer"].to_pylist(), strict=True):
        if at in asked.interval and (not asked.counts.producer or producer in known):
            since = at - asked.interval.start
            yield producer or "", at - since % asked.step


def read_refused_records(
    pipeline: CompiledPipeline, layout: Layout, asked: Counting, epochs: Sequence[Epoch]
) -> Iterator[pa.Table]:
    """Read the refused records that Kafka got at about the time of an interval, or that came with rows of it."""
    again = Reprocessed(pipeline, layout)
    judged = ", ".join(map(str, again.verdicts()))
    first = max(asked.interval.start, EARLIEST + asked.pipeline.max_future) - asked.pipeline.max_future
    span = Interval(first, asked.interval.end + asked.pipeline.very_late)
    with_rows = [
        each for each in list_accepting_epochs(layout, {asked.interval.id}) if each.number <= asked.cut
    ]
    near = f"_kafka_timestamp >= make_timestamptz({to_unix_micros(span.start)}) AND _kafka_timestamp < "
    near += f"make_timestamptz({to_unix_micros(span.end)})"
    own = ", ".join(map(quote_literal, asked.pipeline.source.topics))
    where = f"({near} OR {committed_epochs_sql('_epoch', with_rows)}) AND _epoch <= {asked.cut} AND _topic IN ({own})"
    held = committed_epochs_sql("_epoch", epochs) + (f" AND _epoch NOT IN ({judged})" if judged else "")
    columns = "_value, _topic, _partition, _offset, _kafka_timestamp, _reason"
    for files, which in (
        (read_cached_table(layout.table("quarantine"), "files", Files.of), held),
        (again.files(), f"{REASON} IS NOT NULL"),
    ):
        if files and (paths := list_near_files(files, span, with_rows)):
            with register_tables() as con:
                text = f"SELECT * FROM {read_parquet_sql(paths, uneven=True)} WHERE {where} AND {which}"
                if any(each.begun for each in epochs):
                    text = records_once_sql(text)
                text = f"SELECT {columns} FROM ({text})"
                for batch in con.sql(text).to_arrow_reader(AT_ONCE):
                    yield pa.Table.from_batches([batch])


def records_once_sql(refused: str) -> str:
    """Write refused records, each once that was read again from another cluster, where its topic has another id.

    Equal ones of one cluster are as many as they are there.
    """
    same = "_topic, _kafka_timestamp, md5(_value)"
    counted = f"SELECT *, row_number() OVER (PARTITION BY _topic_id, {same}) AS _copy FROM ({refused})"
    return f"SELECT * FROM ({counted}) QUALIFY row_number() OVER (PARTITION BY {same}, _copy) = 1"


def list_near_files(files: Files, span: Interval, epochs: Sequence[Epoch]) -> list[str]:
    """List the files that may have records that Kafka got in a span of time, or of some epochs."""
    if not files.actions.num_rows:
        return []
    low, high = (each.cast(INSTANT) for each in (files.low(TIMED), files.high(TIMED)))
    before = pc.less(low, pa.scalar(span.end, INSTANT))
    near = files.keep(pc.and_(before, pc.greater_equal(high, pa.scalar(span.start, INSTANT))))
    return sorted({*near.paths, *keep_epoch_files(files, epochs).paths})
