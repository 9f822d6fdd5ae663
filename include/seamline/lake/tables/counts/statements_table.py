"""The table of statements: what producers say that they have sent, each record of its topics once.

A commit has the statements of some ranges of offsets and, as ``txn`` actions, where each range ends: it is decided on
the version before it, so that of two who read the same only one commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.model.protocol.counts.statement import MICROSECOND, SentCount, TakenStatement
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import EPOCH, Interval

NAME = "counts"
TAKEN_TO, LATEST = "seamline.counts/", "seamline.counts.at/"
"""App ids of a lane: the offset after the last that was taken, and the largest Kafka timestamp up to it."""
SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("producer", pa.string()),
        ("start", INSTANT),
        ("end", INSTANT),
        ("count", pa.int64()),
        ("reason", pa.string()),
        ("value", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("at", INSTANT),
        ("taken", INSTANT),
    ]
)


@dataclass(frozen=True)
class LaneState:
    """How far a partition of statements was taken."""

    end: int | None
    """The offset after the last that was taken; None before the first."""
    latest: datetime
    """The largest Kafka timestamp up to it, UTC."""


class StatementsTable:
    """Append-only; one row for each record of the topics of statements."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> StatementsTable:
        """Open the table; create it if missing."""
        return cls(Table.ensure(layout.table(NAME), SCHEMA))

    def lane(self, lane: Lane) -> LaneState:
        """Return how far a partition was taken, by the version that is seen."""
        latest = self.table.txn(f"{LATEST}{lane}")
        return LaneState(
            self.table.txn(f"{TAKEN_TO}{lane}"), EPOCH + (latest or 0) * timedelta(milliseconds=1)
        )

    def append(
        self,
        source: str,
        stated: Sequence[TakenStatement],
        reached: Mapping[Lane, LaneState],
        *,
        now: datetime,
    ) -> None:
        """Add what was read since the version that is seen; Overtaken if somebody else has added some of it since."""
        marks = {}
        for lane, state in reached.items():
            marks[f"{TAKEN_TO}{lane}"] = state.end or 0
            marks[f"{LATEST}{lane}"] = (state.latest - EPOCH) // timedelta(milliseconds=1)
        rows = pa.Table.from_pylist([flatten_stated(source, each, now) for each in stated], schema=SCHEMA)
        name = f"{uuid.uuid4().hex}.parquet"
        files = [data_files.write_data_file(rows, self.table.root, name)] if stated else []
        self.table.append(files, txns=marks)


def flatten_stated(source: str, each: TakenStatement, now: datetime) -> dict[str, object]:
    """Spread a record over the table's columns."""
    said = each.statement
    return {
        "source": source,
        "producer": said and said.producer,
        "start": said and said.window.start,
        "end": said and said.window.end,
        "count": said and said.count,
        "reason": each.reason,
        "value": each.value,
        "topic_id": each.lane.topic_id,
        "partition": each.lane.partition,
        "offset": each.offset,
        "at": each.at,
        "taken": now,
    }


def read_statements(layout: Layout, source: str, span: Interval) -> list[TakenStatement]:
    """Read the statements about spans that begin in a span of event time; none without a table."""
    files = read_cached_table(layout.table(NAME), "files", Files.of)
    return read_statement_rows(
        files, "start", span, f"source = {quote_literal(source)} AND producer IS NOT NULL"
    )


def list_producers(layout: Layout, source: str, span: Interval) -> list[str]:
    """List the producers that have made statements about spans that begin in a span of event time."""
    files = keep_files(read_cached_table(layout.table(NAME), "files", Files.of), "start", span)
    if files is None or not files.paths:
        return []
    query = f"SELECT DISTINCT producer FROM {read_parquet_sql(files.paths)} WHERE {within('start', span)} "
    query += f"AND source = {quote_literal(source)} AND producer IS NOT NULL ORDER BY 1"
    return [name for (name,) in connection().sql(query).fetchall()]


def read_bad_statements(layout: Layout, source: str, taken: Interval) -> list[TakenStatement]:
    """Read the records that are no statements, of those that were taken in a span of time; none without a table."""
    files = read_cached_table(layout.table(NAME), "files", Files.of)
    return read_statement_rows(
        files, "taken", taken, f"source = {quote_literal(source)} AND producer IS NULL"
    )


def list_stated_starts(layout: Layout, source: str, span: Interval) -> list[datetime]:
    """List the instants in a span of event time from which on there are statements, in order."""
    files = keep_files(read_cached_table(layout.table(NAME), "files", Files.of), "start", span)
    if files is None or not files.paths:
        return []
    query = (
        f"SELECT DISTINCT epoch_us(start) FROM {read_parquet_sql(files.paths)} WHERE {within('start', span)} "
    )
    query += f"AND source = {quote_literal(source)} ORDER BY 1"
    return [EPOCH + at * MICROSECOND for (at,) in connection().sql(query).fetchall()]


def read_statement_rows(files: Files | None, column: str, span: Interval, where: str) -> list[TakenStatement]:
    """Read rows whose instant in a column is in a span."""
    files = keep_files(files, column, span)
    if files is None or not files.paths:
        return []
    query = f"SELECT * FROM {read_parquet_sql(files.paths)} WHERE {within(column, span)} AND {where}"
    rows = connection().sql(query).to_arrow_table().to_pylist()
    return list(map(build_stated, rows))


def keep_files(files: Files | None, column: str, span: Interval) -> Files | None:
    """Keep the files that may have an instant of a span in a column."""
    if files is None or not files.actions.num_rows:
        return None
    files = files.keep(pc.less(files.low(column).cast(INSTANT), pa.scalar(span.end, INSTANT)))
    return files.keep(pc.greater_equal(files.high(column).cast(INSTANT), pa.scalar(span.start, INSTANT)))


def within(column: str, span: Interval) -> str:
    """Write the condition that an instant is in a span."""
    start, end = ((bound - EPOCH) // MICROSECOND for bound in (span.start, span.end))
    return f'"{column}" >= make_timestamptz({start}) AND "{column}" < make_timestamptz({end})'


def build_stated(row: Mapping[str, object]) -> TakenStatement:
    """Build what a row of the table says."""
    said = None
    if row["producer"] is not None:
        said = SentCount(row["producer"], Interval(row["start"], row["end"]), row["count"])  # type: ignore[arg-type]
    return TakenStatement(
        Lane(row["topic_id"], row["partition"]),  # type: ignore[arg-type]
        row["offset"],  # type: ignore[arg-type]
        row["at"],  # type: ignore[arg-type]
        said,
        row["reason"],  # type: ignore[arg-type]
        row["value"],  # type: ignore[arg-type]
    )


def count_stated(stated: Iterable[TakenStatement]) -> tuple[int, int]:
    """Count statements, and records that are none."""
    known = [each.statement is not None for each in stated]
    return sum(known), len(known) - sum(known)
