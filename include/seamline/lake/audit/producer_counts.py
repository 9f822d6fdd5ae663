"""What was read of an interval, counted by producer from the log, beside what producers say that they have sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import open_beside, register_tables
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
from seamline.model.compile.event_ids import list_own_ids
from seamline.model.compile.record_rules import SOURCE
from seamline.model.definition.counts import Counts
from seamline.model.protocol.counts.comparison import Read, SourceCounts, compare_counts
from seamline.model.protocol.counts.statement import MICROSECOND, find_step, list_current_statements
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import EPOCH, Interval, parse_duration

AT_ONCE = 20_000
"""Refused records that are looked into together."""
TIMED = "_kafka_timestamp"
REFUSED = "_refused_records"
"""Where a connection keeps refused records while they are counted."""
AT = '"at"'
EARLIEST = datetime.min.replace(tzinfo=UTC)
Place = Callable[[CompiledPipeline, str, pa.Table], pa.Table]
"""Finds time, producer and event ids of refused records of one source, by its pipeline and the producer's column."""
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
        name = self.counts.producer
        column = f"CAST({quote_identifier(name)} AS VARCHAR)"
        return f"CASE WHEN {self.expected_sql(column)} THEN {column} END" if name else "''"

    def expected_sql(self, producer: str) -> str:
        """Write the condition that somebody is expected; of records that name nobody all are."""
        if not self.counts.producer:
            return "true"
        known = ", ".join(map(quote_literal, self.producers))
        return f"{producer} IN ({known})" if known else "false"

    def step_sql(self, at: str) -> str:
        """Write the start of the step that an instant is in, in microseconds from 1970."""
        return span_start_sql(f"epoch_us({at})", self.step // MICROSECOND)

    @property
    def ids_sql(self) -> str:
        """Write the parts of a row's event id, each after a comma and by its own name."""
        ids = list_own_ids(self.pipeline)
        return "".join(f", {quote_identifier(column)} AS {name}" for name, column in ids.items())


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
    refused = (
        place(alone, counts.producer, rows) for rows in read_refused_records(pipeline, layout, asked, epochs)
    )
    found, others, unplaced = count_rows(pipeline, layout, asked, refused)
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


def count_rows(
    pipeline: CompiledPipeline, layout: Layout, asked: Counting, refused: Iterable[pa.Table]
) -> tuple[Reads, int, int]:
    """Count what was read of an interval by producer and step, what is of nobody who is expected, and ``unplaced``.

    Of what has an event id each id is counted once, and as accepted if it is that anywhere. ``unplaced`` are refused
    records that may belong to the interval or to another.
    """
    found: Reads = {}
    others = 0
    rows = log_rows_sql(pipeline, layout, [asked.bounds], asked.cut)
    own = f"WHERE {quote_identifier(SOURCE)} = {quote_literal(asked.named)}" if asked.named else ""
    accepted = (
        f"SELECT {asked.producer_sql} AS producer, {asked.step_sql('_event_time')} AS step{asked.ids_sql}, "
    )
    accepted += f"NULL::BIGINT AS _alone, 1 AS rows FROM {rows} {own}"
    ids = "".join(f", {name}" for name in list_own_ids(asked.pipeline))
    # A row for each id and no list of them: what does not fit into memory goes to disk.
    once = (
        f"SELECT producer, step{ids}, _alone, sum(rows)::BIGINT AS rows FROM ({accepted} UNION ALL BY NAME "
    )
    once += f"SELECT *, 0 AS rows FROM {REFUSED}) GROUP BY ALL"
    events = "count(*) FILTER (rows > 0)" if ids else "sum(rows)::BIGINT"
    query = f"SELECT producer, step, sum(rows)::BIGINT, {events}, count(*) FILTER (rows = 0) FROM ({once}) GROUP BY ALL"
    with register_tables(blank=rows_schema(pipeline).empty_table()) as con:
        try:
            unplaced = keep_refused(con, asked, refused)
            for producer, step, count, distinct, only_refused in con.sql(query).fetchall():
                if producer is None:
                    others += count
                else:
                    start = EPOCH + step * MICROSECOND
                    found.setdefault(producer, {})[start] = Read(count, count - distinct, only_refused)
        finally:
            con.execute(f"DROP TABLE IF EXISTS {REFUSED}")
    return found, others, unplaced


def keep_refused(con: duckdb.DuckDBPyConnection, asked: Counting, refused: Iterable[pa.Table]) -> int:
    """Keep the refused records of the interval and of somebody who is expected; return how many may be of it or not.

    One whose event id is not known is like no other: it has a number alone.
    """
    start, end = asked.bounds
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE {REFUSED} AS SELECT ''::VARCHAR AS producer, 0::BIGINT AS step{asked.ids_sql}, "
        "0::BIGINT AS _alone FROM blank LIMIT 0"
    )
    ids = list_own_ids(asked.pipeline)
    known = " AND ".join(f"{name} IS NOT NULL" for name in ids) or "false"
    unnamed = "producer IS NULL" if asked.counts.producer else "false"
    names = "".join(f", {name}" for name in ids)
    unplaced = seen = 0
    for places in refused:
        with register_tables(placed=places):
            [(unknown,)] = con.execute(
                f"SELECT count(*) FROM placed WHERE {AT} IS NULL OR {unnamed}"
            ).fetchall()
            con.execute(
                f"INSERT INTO {REFUSED} SELECT coalesce(producer, ''), {asked.step_sql(AT)}"
                f"{names}, CASE WHEN NOT ({known}) THEN {seen} + row_number() OVER () END FROM placed "
                f"WHERE epoch_us({AT}) >= {start} AND epoch_us({AT}) < {end} AND {asked.expected_sql('producer')}"
            )
        unplaced, seen = unplaced + unknown, seen + places.num_rows
    return unplaced


def read_refused_records(
    pipeline: CompiledPipeline, layout: Layout, asked: Counting, epochs: Sequence[Epoch]
) -> Iterator[pa.Table]:
    """Read the refused records that Kafka got at about the time of an interval, or that came with rows of it.

    At about that time is from ``max_future`` before it until ``very_late`` after it; rows of it come late in a replay.
    """
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
            # Who reads this counts by the thread's own DuckDB meanwhile.
            with open_beside() as con:
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
